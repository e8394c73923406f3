package tailrace.support

import scala.annotation.nowarn

import tailrace.contract.JsonEncoder

/** Prints the whole registry as JSON, for those who do not run in a JVM. */
object PrintRegistry {
  def main(@nowarn("cat=unused-params") arguments: Array[String]): Unit =
    System.out.println(JsonEncoder.encode(SupportEntry.all))
}
