package org.apache.spark.sql.tailrace.sink.dedup

class ContentIdSuite extends munit.FunSuite {
  test("an id is written with all its digits and read back") {
    for (id <- Seq(ContentId(0, 0), ContentId(-1, 1), ContentId(Long.MinValue, Long.MaxValue))) {
      assertEquals(id.toString.length, 32)
      assertEquals(ContentId.parse(id.toString), Some(id))
    }
  }

  test("other texts are no ids") {
    for (text <- Seq("", "0", "g" * 32, "0" * 31, "0" * 33)) {
      assertEquals(ContentId.parse(text), None)
    }
  }
}
