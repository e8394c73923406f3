package org.apache.spark.sql.tailrace.internals.names

import java.lang.reflect.{Constructor, Field, InvocationTargetException, Method}

import scala.util.Try

/**
 * Reaches into Spark or Kafka by name, where no compiler looks. What an object declares with these methods is both
 * what it calls and what the contract test looks for in an installation.
 */
private[internals] trait ByName {
  private var declared = Vector.empty[NamedMember]

  final def members: Seq[NamedMember] = declared

  /** @param name of the class, as the JVM has it */
  protected final def classNamed(name: String): NamedClass = declare(new NamedClass(name))

  /** @param parameters their classes, by name */
  protected final def method(className: String, name: String, parameters: String*): NamedMethod =
    declare(new NamedMethod(className, name, parameters))

  protected final def constructor(className: String, parameters: String*): NamedConstructor =
    declare(new NamedConstructor(className, parameters))

  protected final def constant(className: String, name: String): NamedConstant =
    declare(new NamedConstant(className, name))

  protected final def field[T](className: String, name: String): NamedField[T] =
    declare(new NamedField[T](className, name))

  private def declare[M <: NamedMember](member: M): M = {
    declared :+= member
    member
  }
}

private[tailrace] sealed trait NamedMember {
  def className: String

  /** As the contract test reports it. */
  def describe: String

  /** Fails if the installation does not have it. */
  def find(): Unit
}

private[internals] object NamedMember {
  // Kafka and its connector may be in jars that the user has added to the session.
  def load(name: String): Class[_] = Class.forName(name, false, Thread.currentThread().getContextClassLoader)

  /** The failure itself, as a plain call would throw it. */
  def unwrapped[T](call: => T): T =
    try call
    catch { case wrapped: InvocationTargetException => throw wrapped.getCause }
}

private[internals] final class NamedClass(override val className: String) extends NamedMember {
  override def describe: String = className
  override def find(): Unit = NamedMember.load(className)

  def isClassOf(instance: AnyRef): Boolean = instance.getClass.getName == className
}

private[internals] final class NamedConstructor(override val className: String, parameters: Seq[String])
    extends NamedMember {
  override def describe: String = s"$className(${parameters.mkString(", ")})"
  override def find(): Unit = found

  def make(arguments: AnyRef*): AnyRef =
    NamedMember.unwrapped(found.newInstance(arguments: _*).asInstanceOf[AnyRef])

  private def found: Constructor[_] = NamedMember.load(className).getConstructors
    .find(_.getParameterTypes.map(_.getName).sameElements(parameters))
    .getOrElse(throw new NoSuchMethodException(describe))
}

/** A constant of an enumeration in Java. */
private[internals] final class NamedConstant(override val className: String, name: String) extends NamedMember {
  override def describe: String = s"$className.$name"
  override def find(): Unit = value

  def value: AnyRef = NamedMember.load(className).getField(name).get(null)
}

private[internals] final class NamedMethod(override val className: String, name: String, parameters: Seq[String])
    extends NamedMember {
  // Of the class that was met last; a session may bring its own.
  @volatile private var last: Method = _

  override def describe: String = s"$className.$name(${parameters.mkString(", ")})"
  override def find(): Unit = in(NamedMember.load(className))

  def call[T](target: AnyRef, arguments: AnyRef*): T = {
    val cached = last
    val method = if (cached != null && cached.getDeclaringClass.isInstance(target)) cached else ofInstance(target)
    NamedMember.unwrapped(method.invoke(target, arguments: _*).asInstanceOf[T])
  }

  def callStatic[T](arguments: AnyRef*): T =
    NamedMember.unwrapped(in(NamedMember.load(className)).invoke(null, arguments: _*).asInstanceOf[T])

  private def ofInstance(target: AnyRef): Method = {
    val method = in(Class.forName(className, false, target.getClass.getClassLoader))
    last = method
    method
  }

  private def in(owner: Class[_]): Method = {
    val found = owner.getMethods.find { method =>
      method.getName == name && method.getParameterTypes.map(_.getName).sameElements(parameters)
    }
    val method = found.getOrElse(throw new NoSuchMethodException(describe))
    method.setAccessible(true)
    method
  }
}

private[internals] final class NamedField[T](override val className: String, name: String) extends NamedMember {
  override def describe: String = s"$className.$name"
  override def find(): Unit = in(NamedMember.load(className))

  def of(owner: AnyRef): T = open(owner).get(owner).asInstanceOf[T]

  def set(owner: AnyRef, value: T): Unit = open(owner).set(owner, value)

  /** For a field that is used often. Fails where the JVM does not allow it. */
  def open(owner: AnyRef): Field = {
    val classes = Iterator.iterate[Class[_]](owner.getClass)(_.getSuperclass).takeWhile(_ != null)
    in(classes.find(_.getName == className).getOrElse(throw new NoSuchFieldException(describe)))
  }

  def isIn(owner: AnyRef): Boolean = Try(open(owner)).isSuccess

  // Scala gives a field that is used in an inner class a longer name.
  private def in(owner: Class[_]): Field = {
    val found = owner.getDeclaredFields.find(field => field.getName == name || field.getName.endsWith("$$" + name))
    val field = found.getOrElse(throw new NoSuchFieldException(describe))
    field.setAccessible(true)
    field
  }
}
