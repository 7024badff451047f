// Package rule reads sharding rules. A rule specifies the key column of each table and the
// generator of its keys:
//
//	rules:
//	- !SHARDING
//	  tables:
//	    t_order:
//	      actualDataNodes: ds_${0..1}.t_order_${0..15}
//	      keyGenerateStrategy: {column: order_id, keyGeneratorName: snowflake}
//	  defaultKeyGenerateStrategy: {column: id, keyGeneratorName: snowflake}
//	  keyGenerators:
//	    snowflake: {type: SNOWFLAKE, props: {worker-id: 123}} # for one process
//
// [Load] reads a rule from a file, [Parse] reads YAML, and [New] builds a rule from a Go struct.
// All three check the rule completely and return a [Rule], which is only a description.
// [Rule.Open] makes the [Live] rule of one connector, with its generators. [Live.Lookup] then
// returns the table that an INSERT names, with its key column and generator.
//
// # ShardingSphere's files
//
// These YAML files of ShardingSphere load unchanged:
//
//   - 5.0 to 5.5.3, as above, and 5.5.4 (keyGenerateStrategies next to the tables)
//   - 4.x (shardingRule, with a keyGenerator in each table and a defaultKeyGenerator)
//
// A file of an alpha version of 5, or the YAML of a Spring Boot application, is an error that names
// the format. "shardkey init --from FILE" converts such a file.
//
// A file can have several YAML documents and several sharding rules. All sharding rules of a file
// share its generators and worker-ID assigners. A default strategy applies to the tables and
// autoTables of its own sharding rule: to tables without a strategy, and to strategies without a
// column or generator. If neither names a generator, the table uses a SNOWFLAKE without
// properties, as in ShardingSphere. The strategy "none:" means that the table has no key.
//
// # Errors and warnings
//
// An unknown key is an error if it looks like a key for key generation or data nodes, since rows
// could otherwise be sent without a key. Any other unknown key is a warning. Keys of ShardingSphere
// that don't matter here, such as data sources, are ignored.
//
// [Rule.Warnings] returns the warnings, each with its place. Opening the rule logs them. "shardkey
// check --strict" turns them into errors.
//
// Write the names of tables and columns without quotes, and the names of columns without their
// table. Names are case-insensitive.
//
// # Keys that only shardkey has
//
// Next to column in a strategy, explicitKeys, batchKeys, unlisted and shardGuard are the settings of
// [KeyConfig]. Next to shardingColumn, javaType is the column's class in Java (Integer, Long or
// String), on which HASH_MOD and expressions depend. By default, the class depends on the value, and
// an integer is a Long. Next to keyGenerators, workerIdAssigners has the worker-ID assigners. The
// property worker-id-assigner of a generator names one of them.
//
// # Tables
//
// A statement refers to a table by its logical name or by the name of an actual table.
// actualDataNodes lists the actual tables: items separated by commas. An item can have expressions
// in ${…} or $->{…}, which stand for one or more strings. Several expressions in an item stand for
// all combinations.
//
//	${0..15}  ${0..<16}  ${'a'..'c'}  ${'00'..'03'}  ${(0..7).step(2)}  ranges
//	${['a', 'b', 3]}  ${'x'}                                      lists, a string
//	${(1..12).collect{t -> t.toString().padLeft(2, '0')}}         closures: also it, (i -> …),
//	                                                              + - *, list*.method()
//	${*}                                                          any number
//	${yyyyMM}                                                     a date: yyyy yy MM dd HH mm ss - _
//
// A number with a leading zero is an error: Groovy, which ShardingSphere uses for expressions,
// reads it as octal. The prefixes <INTERVAL>, <LITERAL> and <GROOVY> are supported. A table can have
// at most 1,048,576 data nodes. Without actualDataNodes, the logical name is the only actual table.
// The actual tables of an auto table are name_0 to name_n-1; n comes from its algorithm.
//
// ${*} and dates are patterns, for tables that are created at run time. A pattern must not match the
// tables of another logical table.
//
// A data node is dataSource.table or dataSource.schema.table. The data source is ignored when
// looking up a table, because statements can't name it: INSERT INTO app.t_order_3 is an INSERT into
// t_order for every schema app. If the data node has a schema, a statement with a schema must name
// that one. The same is true of a table without actualDataNodes whose logical name is schema.table.
// Two logical tables must not have an actual table of the same name, unless their schemas differ.
//
// shardkey generates no keys for a table that isn't in a rule. [Live.Unlisted] finds tables that
// were probably forgotten.
//
// # Sharding
//
// [Table.Sharding] computes the place of a row from the values of its sharding columns, with the
// same result as ShardingSphere. The page [sharding algorithms] lists those that are
// supported.
// [Table.ShardBits] computes the shard bits of keys, which the properties gene-column and gene-bits of a
// generator request.
//
// # Properties
//
// The value of a property is a string or a list of strings. In a value, ${NAME} stands for an
// environment variable, which must be set. ${NAME::default} has a default, also as
// $${NAME::default}. \${ stands for the characters "${". Errors and descriptions never contain the
// value of a variable. In YAML's flow style ({a: b}), a value with ${…} must be in quotes.
//
// [sharding algorithms]: https://github.com/shardkey/shardkey/blob/main/docs/reference/sharding.md
package rule
