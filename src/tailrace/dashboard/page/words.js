// What each figure means, in the words of the people who run the query. Shown as tooltips and at the foot of the page.

export const WORDS = {
  "end to end":
    "From the record's timestamp until the sink has acknowledged the row: the time a consumer waits for the result.",
  p50: "Half of the rows were faster than this.",
  p99: "99 of 100 rows were faster than this; one was slower.",
  "p99.9": "999 of 1,000 rows were faster than this; one was slower.",
  max: "The slowest row of all.",
  "rows in": "Rows read from the source each second.",
  "rows out": "Rows handed to the sink each second. Filters and aggregations make it differ from the rows read.",
  lag: "Rows that are in the source and not yet read, over all partitions. It should stay near zero.",
  epoch: "Progress is committed at the end of each epoch. Rows do not wait for it, but reading pauses for a moment.",
  boundary: "At an epoch boundary nothing is read for a moment while progress is committed.",
  "heat map":
    "Each column is a second, each row a range of latency; the stronger the color, the more rows took that long.",
  "source queue":
    "From the record's timestamp until Spark read it: in the producer, on the broker, in the queue before the query.",
  processing: "From read until handed to the sink: your operators, your Python, shuffles between stages.",
  acknowledgement: "From handed to the sink until the sink has confirmed it.",
  rest: "The rest of the end-to-end p99: above all the sink's acknowledgement.",
  python: "One batch of rows with the Python worker, there and back.",
  shuffle: "From sent by the stage before until received by this one.",
  sink: "The call of the sink itself, without waiting for its acknowledgement.",
  "stage time": "A row's way through the stage.",
  tasks: "Each bar is one task's p99. If one towers over the others, its share of the keys is too large.",
  cpu: "How busy the machine is; at 100 % rows wait for a core.",
  "process cpu": "The part of it that is this executor.",
  gc: "Pauses for garbage collection: how many, and the longest. Every row waits for them.",
  hiccups: "How late a thread that only sleeps wakes up: p99 and worst. It shows stalls that affect every thread.",
  heap: "Memory of the JVM in use, of what it may take.",
  "state rows": "Keys, windows and the like that the operator remembers.",
  "state memory": "Memory used by this state.",
  commit: "How long it took to save the changed state at the end of the epoch; it lengthens the pause there.",
};

export const STATUS_WORDS = {
  ready: "The query runs and keeps up with its source.",
  lagging: "The query runs, but rows arrive faster than it reads them.",
  starting: "The query is starting: it has not read a row yet, or is still in its first, short epochs.",
  failed: "The query ended with an error.",
  ended: "The query was stopped.",
};
