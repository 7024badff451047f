// Package groovy computes the Groovy expressions that stand in ShardingSphere's
// sharding rules, with the values and the arithmetic of Java:
//
//	t_order_${order_id % 4}
//	ds_${Math.abs(user_id.hashCode()) % 2}
//	t_${(id % 64).toString().padLeft(2, '0')}
//
// [Compile] reads a text once; [Template.Append] computes it for the values of its
// names, without allocation where the values are integers or short texts.
//
// # What is understood
//
//   - - * / % **  << >> >>>  & | ^ ~  && || !  == != < <= > >=  ?:  ( )
//     (int) x  (Long) x  x as long                 casts to the classes below
//     'text'  "text"  12  12L  12G  0x1F  1.5      literals
//     [0, 1, 2][n]  ['a': 1, b: 2][x]              lists and maps
//     s[0..3]  s[-1]                               parts of a text
//     x.hashCode() .abs() .intdiv(n) .toLong() …   methods: see methods.go
//     Math.abs(x)  Long.parseLong(s)  String.format("%02d", n) …
//
// Everything else is a [*SyntaxError]: no Groovy is run that is not listed here.
// A text has at most 4,096 bytes and its brackets are nested at most 60 deep;
// numbers have at most 4,096 bits.
//
// # Classes
//
// A value has one of Java's classes ([Class]), and the class decides what an
// operator does: Integer and Long wrap around at 32 and 64 bits, an operator of
// both is one of Long, "/" of integers gives a BigDecimal, "%" has the sign of the
// dividend except that BigInteger's is never negative (Groovy 2.4 to 4), and each
// class has a hashCode of its own.
//
// # Why an evaluator of its own
//
// The known expression libraries for Go (expr, cel-go, govaluate, gval) have one
// kind of integer, of 64 bits, whose "/" is Go's or a float64's, and no hook to
// change what the operators of literals mean: neither Integer's wrapping nor
// BigDecimal's quotient nor "1 + 'a'" can be had from them, and a sharding rule
// that is computed almost as in Java puts rows into other tables than Java does.
// The grammar itself is the smaller half of this package.
package groovy
