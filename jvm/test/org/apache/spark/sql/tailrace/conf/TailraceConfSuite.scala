package org.apache.spark.sql.tailrace.conf

import munit.FunSuite

import org.apache.spark.sql.internal.SQLConf

import tailrace.TailraceException

class TailraceConfSuite extends FunSuite {
  private def problemOf(settings: (String, String)*): TailraceException =
    intercept[TailraceException](TailraceConf.check(settings))

  private def conf(settings: (String, String)*): SQLConf = {
    val conf = new SQLConf
    settings.foreach { case (key, value) => conf.setConfString(key, value) }
    conf
  }

  test("every default is allowed") {
    TailraceConf.all.foreach(setting => setting.default.foreach(text => setting.parse(text)))
  }

  test("every setting refuses nonsense, unless any text will do") {
    val nonsense = TailraceConf.all.filterNot(setting => Set("text", "path")(setting.kind)).map { setting =>
      val problem = problemOf(setting.key -> "no such thing")
      assert(problem.getMessage.contains(setting.key))
      problem.getCondition
    }
    assertEquals(nonsense.distinct, Seq("TAILRACE_BAD_SETTING"))
  }

  test("numbers and durations have bounds") {
    Seq("-1", "65536", "1.5", "").foreach { port =>
      assertEquals(problemOf(TailraceConf.DashboardPort.key -> port).getCondition, "TAILRACE_BAD_SETTING")
    }
    Seq("0s", "-1s", "").foreach { time =>
      assertEquals(problemOf(TailraceConf.PythonTimeout.key -> time).getCondition, "TAILRACE_BAD_SETTING")
    }
  }

  test("a misspelt key is refused with the nearest one") {
    val problem = problemOf("spark.tailrace.warmup.epoch" -> "0")
    assertEquals(problem.getCondition, "TAILRACE_UNKNOWN_SETTING")
    assert(problem.getMessage.contains("spark.tailrace.warmup.epochs"))
  }

  test("others' settings and those of tests are left alone") {
    TailraceConf.check(Seq("spark.master" -> "local", "spark.tailrace.testing.lastStep" -> "7"))
  }

  test("values are read as what they are") {
    assertEquals(TailraceConf.PythonTimeout.valueIn(conf()), 120000L)
    assertEquals(TailraceConf.PythonTimeout.valueIn(conf(TailraceConf.PythonTimeout.key -> " 3s ")), 3000L)
    assertEquals(TailraceConf.LatencyEnabled.valueIn(conf(TailraceConf.LatencyEnabled.key -> "FALSE")), false)
    assertEquals(TailraceConf.WatermarkIdleAfter.of(conf()), None)
    val codes = conf(TailraceConf.CheckWarnOnly.key -> "TAILRACE_A, TAILRACE_B")
    assertEquals(TailraceConf.CheckWarnOnly.of(codes), Some(Set("TAILRACE_A", "TAILRACE_B")))
  }
}
