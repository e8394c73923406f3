package tailrace

import java.util.Properties

/** The versions stamped into this jar when it was built. */
object BuildInfo {
  private val stamp: Properties = {
    val properties = new Properties
    val stream = getClass.getResourceAsStream("/tailrace/build.properties")
    if (stream == null) {
      throw new IllegalStateException("the plugin jar has no build.properties: it was not built by jvm/build.py")
    }
    try properties.load(stream)
    finally stream.close()
    properties
  }

  /** Tailrace's version. */
  val version: String = stamp.getProperty("version")

  /** The version of Spark that the plugin was compiled against. */
  val sparkVersion: String = stamp.getProperty("spark")
}
