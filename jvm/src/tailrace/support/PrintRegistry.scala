package tailrace.support

import scala.annotation.nowarn

import com.fasterxml.jackson.databind.ObjectMapper

/** The whole registry as JSON on standard output, for those who do not run in a JVM. */
object PrintRegistry {
  def main(@nowarn("cat=unused-params") arguments: Array[String]): Unit = {
    val mapper = new ObjectMapper
    val rows = mapper.createArrayNode()
    (Operators.all ++ Sinks.all).foreach { support =>
      val row = rows.addObject().put("group", support.group).put("name", support.name)
      row.put("class_name", support.className)
      support.level match {
        case Supported(note) => row.put("supported", true).put("note", note)
        case Unsupported(reason, remedy) => row.put("supported", false).put("reason", reason).put("remedy", remedy)
      }
    }
    System.out.println(mapper.writeValueAsString(rows))
  }
}
