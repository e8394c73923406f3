package org.apache.spark.sql.tailrace.conf

import scala.annotation.nowarn

import com.fasterxml.jackson.databind.ObjectMapper

/** Prints the settings as JSON, for programs outside a JVM. */
object PrintSettings {
  def main(@nowarn("cat=unused-params") arguments: Array[String]): Unit = {
    val mapper = new ObjectMapper
    val rows = mapper.createArrayNode()
    TailraceConf.all.foreach { setting =>
      rows.addObject()
        .put("key", setting.key)
        .put("kind", setting.kind)
        .put("default", setting.default.orNull)
        .put("scope", setting.scope.name)
        .put("doc", setting.doc)
        .put("page", setting.page)
        .put("allowed", setting.allowed)
    }
    System.out.println(mapper.writeValueAsString(rows))
  }
}
