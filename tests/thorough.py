"""What `make test` leaves to `make thorough`.

`make test` has one path through each feature, its bad inputs and its crash, and takes minutes. The cores limit it, so
this lists the tests that cost most CPU time (tests/helpers/cpu_costs.py) and that show a variant of what another one
shows: for each, the variants that `make test` keeps. A star stands for any text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from fnmatch import fnmatchcase

FOLDER = "tests/integration/"

# By test: the parameters that `make test` keeps.
KEPT: dict[str, tuple[str, ...]] = {
    "bench/test_bench.py::test_a_job_that_fails_does_not_stop_the_rest": (),
    "bench/test_bench.py::test_the_command_writes_report_pictures_and_figures": (),
    "check/test_corpus.py::test_what_is_allowed_runs": (
        "select and filter",
        "join of two streams",
        "groupBy",
        "session window",
        "dropDuplicates",
        "udf",
        "transformWithState",
        "mapInPandas",
        "SQL",
    ),
    "checkpoint/test_files.py::TestAMachineThatStops::test_before_any_step_leaves_the_old_file_or_the_new": (
        "True-True",
    ),
    "dashboard/test_page_figures.py::test_a_plan_of_several_branches": (),
    "dashboard/test_page_figures.py::test_of_many_partitions_the_worst_are_shown": (),
    "dashboard/test_page_states.py::test_a_monitor_that_fails_is_told_with_its_reason": (),
    "dashboard/test_page_states.py::test_a_query_that_has_recorded_nothing_yet": (),
    "dashboard/test_page_states.py::test_an_answer_that_was_cut_off_is_a_lost_connection": ("snapshot",),
    "dashboard/test_page_states.py::test_other_statuses": ("ended",),
    "demo/test_demo.py::test_a_read_only_output_folder": (),
    "demo/test_demo.py::test_no_java": ("/nowhere",),
    "epoch/test_drain.py::test_a_restart_repeats_nothing_and_misses_nothing": ("shuffled",),
    "epoch/test_engine_promises.py::test_a_restart_in_the_middle_of_an_epoch_loses_nothing": ("*stateful",),
    "epoch/test_engine_promises.py::test_offsets_are_committed_after_the_epoch_and_not_before": ("*stateful",),
    "epoch/test_overlap.py::test_bad_records_are_skipped_across_boundaries": (),
    "epoch/test_overlap.py::test_many_boundaries_lose_and_repeat_nothing": ("passed_on-5", "through_python-5"),
    "epoch/test_overlap.py::test_progress_counts_every_row_once": (),
    "epoch/test_overlap_failures.py::test_a_drain_while_the_next_epoch_waits_for_its_state": (),
    "epoch/test_overlap_joins.py::test_a_restart_loses_no_row": (),
    "epoch/test_overlap_joins.py::test_rows_that_leave_before_the_boundary": (),
    "epoch/test_overlap_joins.py::test_the_same_rows_as_in_micro_batch": ("full_outer",),
    "epoch/test_overlap_python_state.py::test_a_drain_while_the_next_epoch_waits_for_its_state": (),
    "epoch/test_overlap_python_state.py::test_a_processor_counts_as_in_micro_batch": ("in_rows",),
    "epoch/test_overlap_python_state.py::test_an_epoch_that_continued_from_other_state_is_not_committed": (),
    "epoch/test_overlap_python_state.py::test_the_checkpoint_goes_to_micro_batches_and_back": (),
    "epoch/test_overlap_python_state.py::test_workers_are_used_again": (),
    "epoch/test_overlap_refused.py::test_a_python_processor_if_each_row_is_written_once": (),
    "epoch/test_overlap_refused.py::test_operations": ("*current time*",),
    "epoch/test_overlap_refused.py::test_rows_that_a_replay_could_make_otherwise": ("*dropDuplicatesWithinWatermark",),
    "epoch/test_overlap_refused.py::test_state_that_does_not_stay": (),
    "epoch/test_overlap_refused.py::test_too_few_slots_for_a_shuffle": (),
    "epoch/test_overlap_sessions.py::test_a_drain_while_the_next_epoch_waits_for_its_state": (),
    "epoch/test_overlap_sessions.py::test_a_restart_loses_no_session": (),
    "epoch/test_overlap_sessions.py::test_sessions_that_close_before_the_boundary": (),
    "epoch/test_overlap_sessions.py::test_the_same_sessions_as_in_micro_batch": ("append",),
    "epoch/test_overlap_state.py::test_a_shuffle_without_state": (),
    "epoch/test_overlap_state.py::test_an_aggregation_without_a_key": (),
    "epoch/test_overlap_state.py::test_duplicates_are_known_across_boundaries": ("without_duplicates",),
    "epoch/test_overlap_state.py::test_progress_tells_of_the_state": (),
    "epoch/test_overlap_state.py::test_python_on_the_results_of_an_aggregation": (),
    "epoch/test_overlap_state.py::test_two_operators_with_state": (),
    "epoch/test_overlap_watermark.py::test_a_restart_goes_on_with_the_watermark": (),
    "epoch/test_warm_start.py::test_they_are_at_the_start_of_each_run": (),
    "errors/test_bad_records.py::test_a_bad_record_costs_little": ("python_udf", "pandas_function"),
    "errors/test_bad_records.py::test_a_letter_that_is_too_large_is_sent_without_what_does_not_fit": ("value",),
    "errors/test_bad_records.py::test_by_default_the_query_fails_and_names_the_record": (
        "bad_cast_behind_a_shuffle",
        "python_udf",
    ),
    "errors/test_bad_records.py::test_dead_letters": (
        "bad_cast",
        "python_udf",
        "pandas_function_over_batches",
        "python_worker_crashes",
        "bad_cast_before_python",
    ),
    "kafka/test_embedded_kafka.py::test_clients_that_come_through_a_proxy_stay_there": (),
    "kafka/test_secured.py::test_a_missing_right_is_named_with_the_command_that_grants_it": ("0", "4"),
    "monitor/test_causes.py::test_a_broker_that_stops_shows_outside_of_the_query": (),
    "monitor/test_causes.py::test_a_hot_key_shows_in_the_task_that_gets_it": (),
    "monitor/test_causes.py::test_a_slow_row_before_a_shuffle_shows_in_the_first_stage": (),
    "operators/join/test_intra_epoch_joins.py::test_a_stop_loses_no_outer_row": (),
    "operators/join/test_intra_epoch_joins.py::test_a_window_can_be_the_time": (),
    "operators/join/test_intra_epoch_joins.py::test_an_outer_row_leaves_when_its_time_is_over": ("full_outer",),
    "operators/join/test_intra_epoch_joins.py::test_the_same_rows_as_in_micro_batch": (),
    "operators/join/test_intra_epoch_joins.py::test_who_is_behind_is_waited_for": ("1h-partition", "2s-side"),
    "operators/join/test_joins.py::test_a_match_does_not_wait_for_the_epoch": ("left",),
    "operators/join/test_joins.py::test_a_stop_loses_no_match": (),
    "operators/join/test_joins.py::test_an_error_names_the_record_that_completed_the_match": ("right",),
    "operators/python/test_chained_processors.py::test_one_behind_the_other": (),
    "operators/python/test_failures.py::test_a_function_that_hangs_is_reported_and_nothing_is_lost": ("udf",),
    "operators/python/test_failures.py::test_a_result_that_cannot_be_converted_names_its_record": (
        "transformWithState",
    ),
    "operators/python/test_failures.py::test_an_exception_names_the_record_at_once_though_no_row_follows": (
        "udf with Arrow",
        "transformWithState",
    ),
    "operators/python/test_failures.py::test_the_record_is_named_within_a_large_batch": ("pandas_udf",),
    "operators/python/test_function_parity.py::test_arguments_by_name": (),
    "operators/python/test_function_parity.py::test_whole_batches": (),
    "operators/python/test_intra_epoch_timers.py::test_a_partition_that_is_behind_is_waited_for": ("2s",),
    "operators/python/test_intra_epoch_timers.py::test_the_same_timers_as_in_micro_batch": (),
    "operators/python/test_operators.py::test_a_map_may_stop_before_its_input_does": (),
    "operators/python/test_operators.py::test_before_and_after_a_shuffle": (),
    "operators/python/test_processor_parity.py::test_an_initial_state": (),
    "operators/python/test_random_programs.py::test_they_come_to_the_same_as_in_micro_batch": (),
    "operators/python/test_state_errors.py::test_an_error_of_the_state_names_its_record": (
        "put_nothing",
        "update_with_a_float",
    ),
    "operators/python/test_state_evolution.py::test_a_new_column_is_null_in_what_was_stored_before": (),
    "operators/python/test_state_evolution.py::test_without_a_format_that_can_evolve_it_is_refused": ("real-time",),
    "operators/python/test_state_parity.py::test_time_to_live": (),
    "operators/python/test_state_parity.py::test_timers": (),
    "operators/python/test_tracebacks.py::test_the_users_frames_come_first_as_in_batch": (
        "udf with Arrow",
        "transformWithState",
    ),
    "operators/python/test_workers.py::test_rows_larger_than_a_sockets_buffer": ("udf",),
    "operators/python/test_workers.py::test_workers_serve_one_epoch_after_the_other": ("and one of the next epoch",),
    "operators/session/test_session_windows.py::test_a_checkpoint_moves_between_the_modes": (),
    "operators/session/test_session_windows.py::test_a_partition_that_is_behind_is_waited_for": ("2s",),
    "operators/session/test_session_windows.py::test_a_stop_loses_nothing": (),
    "operators/state/test_bounded_deduplication.py::test_a_stop_repeats_and_loses_nothing_else": (),
    "operators/state/test_drop_duplicates.py::test_a_key_is_forgotten_in_time": ("real-time",),
    "operators/state/test_drop_duplicates.py::test_columns_stay_what_they_are": ("real-time",),
    "operators/state/test_drop_duplicates.py::test_keys_outlive_a_restart": ("real-time",),
    "operators/state/test_drop_duplicates.py::test_random_rows_and_times": (),
    "operators/state/test_drop_duplicates.py::test_texts_that_are_no_texts_are_told_apart": ("real-time",),
    "operators/state/test_timers.py::test_a_timer_does_not_wait_for_a_row": ("key",),
    "operators/test_growth.py::test_nothing_grows": ("sessions", "timers", "udf with Arrow"),
    "origin/test_origins.py::test_the_engine_knows_where_each_row_came_from": (
        "explode",
        "two topics",
        "pandas_udf after a shuffle",
        "chain",
        "65 columns",
        "two shuffles",
    ),
    "sink/postgresql/test_exactly_once.py::test_each_row_is_appended_once": ("exploded_and_shuffled",),
    "sink/test_changed_output.py::test_a_query_has_the_same_fingerprint_in_each_process": (),
    "sink/test_changed_output.py::test_a_topic_of_the_same_name_on_another_cluster": (),
    "sink/test_changed_output.py::test_another_topic_gets_all_rows_of_the_open_epoch": ("numbered",),
    "sink/test_ended_writers.py::test_consumers_of_committed_records_do_not_wait_for_a_query_that_has_ended": (
        "failure",
    ),
    "sink/test_exactly_once.py::test_a_replay_that_takes_longer_than_an_epoch": (),
    "sink/test_exactly_once.py::test_each_row_once": ("passed_on*", "exploded_and_shuffled_twice*"),
    "sink/test_exactly_once.py::test_the_first_of_each_once": ("first_of_each",),
    "sink/test_exactly_once_joins.py::test_a_function_that_fails_in_the_middle": (),
    "sink/test_exactly_once_joins.py::test_a_repetition_that_ends_before_the_other_row_is_read": (),
    "sink/test_exactly_once_joins.py::test_all_that_a_record_says_is_its_content": (),
    "sink/test_exactly_once_joins.py::test_each_match_once": ("each_pair*",),
    "sink/test_exactly_once_joins.py::test_what_could_not_be_known_again_is_refused": (
        "*current_timestamp*",
        "*by_chance-*",
        "*outer",
        "*repartitioned",
    ),
    "sink/test_exactly_once_joins.py::test_what_was_dropped_is_in_the_progress": (),
    "sink/test_hostile_writers.py::test_a_copy_of_the_checkpoint_has_the_same_secret": (),
    "sink/test_hostile_writers.py::test_a_record_that_no_source_holds_is_not_waited_for": ("True",),
    "sink/test_hostile_writers_to_joins.py::test_a_copied_match_does_not_hide_another_that_looks_the_same": (),
    "sink/test_last_records.py::test_a_timer_that_fires_later_than_before_is_seen_at_once": (),
    "sink/test_last_records.py::test_timers_of_later_epochs_are_new": (),
    "sink/test_two_clusters.py::test_a_partition_that_is_gone_is_not_waited_for": (),
    "test_applications.py::test_a_new_project_passes_its_own_test": ("fraud", "alerting"),
    "test_examples.py::test_gaming_sessions": (),
    "test_plugin_build.py::test_it_is_compiled_only_when_something_changed": (),
    "testing/test_stream_test.py::test_a_sum_per_key": ("real-time",),
    "testing/test_stream_test.py::test_a_window_closes_by_the_rows_time": ("real-time",),
    "testing/test_stream_test.py::test_functions_in_python": ("real-time",),
    "testing/test_stream_test.py::test_timers_go_by_the_tests_clock": ("real-time",),
}


def is_thorough(test: str) -> bool:
    """:param test: its id, as pytest writes it"""
    name, parameters = _parts(test)
    kept = KEPT.get(name)
    return kept is not None and not any(fnmatchcase(parameters, pattern) for pattern in kept)


def unknown(tests: Iterable[str]) -> set[str]:
    """What is listed here, but not among these tests, of the files that they are in."""
    variants: dict[str, list[str]] = defaultdict(list)
    for name, parameters in map(_parts, tests):
        variants[name].append(parameters)
    files = {name.partition("::")[0] for name in variants}
    listed = {name: kept for name, kept in KEPT.items() if name.partition("::")[0] in files}
    return {name for name in listed if name not in variants} | {
        f"{name}[{pattern}]"
        for name, kept in listed.items()
        for pattern in kept
        if not any(fnmatchcase(one, pattern) for one in variants[name])
    }


def _parts(test: str) -> tuple[str, str]:
    name, _, parameters = test.removeprefix(FOLDER).partition("[")
    return name, parameters.removesuffix("]")
