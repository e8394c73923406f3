package org.apache.spark.sql.tailrace

import scala.reflect.runtime.currentMirror
import scala.reflect.runtime.universe._

import com.fasterxml.jackson.databind.ObjectMapper

import org.apache.spark.sql.tailrace.metrics.LiveFiguresMessage
import org.apache.spark.sql.tailrace.preflight.QueryDescription

import tailrace.contract.{JsonEncoder, RawJson}
import tailrace.support.SupportEntry

/**
 * Every message that crosses the border to Python: the fields of its case classes, and two values of it, one with
 * something in every field and one with nothing where nothing is allowed. Both are made by reflection, so a new field is
 * in them by itself.
 *
 * Prints them as JSON. With `compare`, reads the values back from standard input and says whether they are the same.
 */
object ContractSamples {
  private val messages = Seq(typeOf[LiveFiguresMessage], typeOf[QueryDescription], typeOf[SupportEntry])
  private val mapper = new ObjectMapper

  def main(arguments: Array[String]): Unit =
    if (arguments.headOption.contains("compare")) {
      val same = mapper.readTree(System.in) == mapper.readTree(JsonEncoder.encode(samples))
      System.out.println(if (same) "the same" else "different")
    } else {
      System.out.println(JsonEncoder.encode(Map("schema" -> schema, "samples" -> samples)))
    }

  private def samples: Map[String, Seq[Any]] =
    messages.map(message => nameOf(message) -> Seq(valueOf(message, full = true), valueOf(message, full = false))).toMap

  /** By class, and by field: its type, in Python's words. */
  private def schema: Map[String, Map[String, String]] =
    reachable(messages.toSet).map { record =>
      nameOf(record) -> fieldsOf(record).map { case (name, of) => JsonEncoder.snakeCase(name) -> described(of) }.toMap
    }.toMap

  private def reachable(found: Set[Type]): Set[Type] = {
    val inside = found.flatMap(fieldsOf(_).map(_._2)).flatMap(recordsIn)
    val more = inside.filterNot(one => found.exists(_ =:= one))
    if (more.isEmpty) found else reachable(found ++ more)
  }

  private def recordsIn(of: Type): Seq[Type] =
    if (of.typeArgs.nonEmpty) of.typeArgs.flatMap(recordsIn)
    else if (variantsOf(of).nonEmpty) variantsOf(of)
    else if (isRecord(of)) Seq(of)
    else Nil

  private def described(of: Type): String = of match {
    case _ if of <:< typeOf[Option[_]] => s"${described(of.typeArgs.head)} | None"
    case _ if of <:< typeOf[scala.collection.Map[_, _]] =>
      s"Mapping[${described(of.typeArgs.head)}, ${described(of.typeArgs.last)}]"
    case _ if of <:< typeOf[Seq[_]] => s"tuple[${described(of.typeArgs.head)}, ...]"
    case _ if of =:= typeOf[Int] || of =:= typeOf[Long] || of =:= typeOf[BigInt] => "int"
    case _ if of =:= typeOf[Double] => "float"
    case _ if of =:= typeOf[Boolean] => "bool"
    case _ if of =:= typeOf[String] => "str"
    case _ if of =:= typeOf[RawJson] => "Any"
    case _ if variantsOf(of).nonEmpty => variantsOf(of).map(nameOf).sorted.mkString(" | ")
    case _ => nameOf(of)
  }

  private def valueOf(of: Type, full: Boolean): Any = of match {
    case _ if of <:< typeOf[Option[_]] => Option.when(full)(valueOf(of.typeArgs.head, full))
    case _ if of <:< typeOf[scala.collection.Map[_, _]] =>
      if (full) Map(valueOf(of.typeArgs.head, full) -> valueOf(of.typeArgs.last, full)) else Map.empty
    case _ if of <:< typeOf[Seq[_]] =>
      val inner = of.typeArgs.head
      if (!full) Nil
      else if (variantsOf(inner).nonEmpty) variantsOf(inner).map(valueOf(_, full))
      else Seq(valueOf(inner, full))
    case _ if of =:= typeOf[Int] => 7
    case _ if of =:= typeOf[Long] => if (full) Long.MaxValue else 0L
    case _ if of =:= typeOf[BigInt] => BigInt(2).pow(70)
    case _ if of =:= typeOf[Double] => if (full) 0.25 else 0.0
    case _ if of =:= typeOf[Boolean] => full
    case _ if of =:= typeOf[String] => if (full) "\"ä\n\u2028" else ""
    case _ if of =:= typeOf[RawJson] => RawJson("""{"topic":{"0":12}}""")
    case _ => make(of, fieldsOf(of).map { case (_, inner) => valueOf(inner, full) })
  }

  private def make(of: Type, fields: Seq[Any]): Any = {
    val constructor = of.decl(termNames.CONSTRUCTOR).asTerm.alternatives.head.asMethod
    currentMirror.reflectClass(of.typeSymbol.asClass).reflectConstructor(constructor)(fields: _*)
  }

  private def fieldsOf(of: Type): Seq[(String, Type)] =
    of.decl(termNames.CONSTRUCTOR).asTerm.alternatives.head.asMethod.paramLists.head
      .map(field => field.name.toString -> field.typeSignature.dealias)

  private def isRecord(of: Type): Boolean =
    of.typeSymbol.isClass && of.typeSymbol.asClass.isCaseClass && !(of =:= typeOf[RawJson])

  /** The cases of a sealed trait. */
  private def variantsOf(of: Type): Seq[Type] =
    if (of.typeSymbol.isClass && of.typeSymbol.asClass.isSealed && of.typeSymbol.asClass.isTrait)
      of.typeSymbol.asClass.knownDirectSubclasses.toSeq.map(_.asType.toType).sortBy(nameOf)
    else Nil

  private def nameOf(of: Type): String = of.typeSymbol.name.toString
}
