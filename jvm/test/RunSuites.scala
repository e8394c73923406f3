package tailrace

import scala.collection.mutable

import org.junit.runner.{Description, JUnitCore}
import org.junit.runner.notification.{Failure, RunListener}

/** Runs the suites of the given class names; started by jvm/test.py. */
object RunSuites {
  def main(suites: Array[String]): Unit = {
    val results = new Results
    val junit = new JUnitCore
    junit.addListener(results)
    junit.run(suites.map(Class.forName(_)): _*)
    // The closing line must be the last one.
    System.err.flush()
    System.out.println(results.summary)
    System.out.flush()
    // A test may have left a thread running.
    sys.runtime.halt(if (results.failed == 0 && results.passed > 0) 0 else 1)
  }

  private final class Results extends RunListener {
    private val unsuccessful = mutable.HashSet.empty[Description]
    var passed = 0
    var failed = 0
    private var skipped = 0

    override def testFinished(test: Description): Unit = if (!unsuccessful(test)) passed += 1

    override def testFailure(failure: Failure): Unit = {
      unsuccessful += failure.getDescription
      failed += 1
      System.out.println(s"FAILED ${failure.getDescription.getDisplayName}\n${failure.getTrimmedTrace.trim}\n")
    }

    override def testAssumptionFailure(failure: Failure): Unit = {
      unsuccessful += failure.getDescription
      skipped += 1
    }

    override def testIgnored(test: Description): Unit = skipped += 1

    def summary: String = s"$passed passed, $failed failed" + (if (skipped > 0) s", $skipped skipped" else "")
  }
}
