package tailrace.support

import scala.annotation.nowarn

import tailrace.contract.JsonEncoder

/** Prints the whole registry as JSON, for programs outside a JVM. */
object PrintRegistry {
  def main(@nowarn("cat=unused-params") arguments: Array[String]): Unit =
    System.out.println(JsonEncoder.encode(SupportEntry.all))
}
