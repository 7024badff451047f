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
//	    snowflake: {type: SNOWFLAKE, props: {worker-id: 123}}
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
// A file of another version or of a Spring Boot application is an error that names the format.
// "shardkey init --from FILE" converts such a file.
//
// A file can have several YAML documents and several sharding rules. All sharding rules of a file
// share its generators and worker-ID assigners. A default strategy applies to the tables and
// autoTables of its own sharding rule: to tables without a strategy, and to strategies without a
// column or generator. If neither names a generator, the table uses a SNOWFLAKE without
// properties, as in ShardingSphere. The strategy "none:" means that the table has no key.
//
// # Errors and warnings
//
// shardkey knows the keys of all ShardingSphere versions. It uses the keys for key generation and
// sharding, and ignores the others, for example data sources, auditors and other rules. An unknown
// key is
//
//   - an error if it looks like a key for key generation. Its spelling may be similar
//     (keyGenerator_, dataNodes), or there may be a map with the name of a generator under it. If
//     such a key were ignored, rows could be sent without a key
//   - a warning otherwise
//
// [Rule.Warnings] returns the warnings, each with its place. There are warnings about unknown keys,
// auto tables whose number can't be computed, and properties that are never read. Another warning
// is about tables sharded by their key modulo n, if the max-vibration-offset of their SNOWFLAKE
// leaves shards almost empty. Opening the rule logs the warnings. "shardkey check --strict" and the
// DSN parameter shardkeyRuleWarnings=error turn them into errors.
//
// Write the names of tables and columns without quotes, and the names of columns without their
// table. Names are case-insensitive.
//
// # Keys that only shardkey has
//
// Next to column in a strategy:
//
//   - explicitKeys: fill or keep. How to handle a NULL, 0, DEFAULT or empty string as the key of a
//     row: fill generates a key, as AUTO_INCREMENT does; keep leaves it, as ShardingSphere does
//   - batchKeys: any or consecutive. With consecutive, a statement whose integer keys aren't
//     consecutive is refused, unless its caller asked for the key of each row
//   - unlisted: refuse, warn or pass. How to handle an INSERT into a table that isn't in the rule,
//     but has a name like this table's. The default is the connection's shardkeyUnlisted
//   - shardGuard: refuse, warn or off. How to handle a row that doesn't belong in the actual table
//     that its INSERT names. The default is refuse
//
// Next to shardingColumn in a databaseStrategy, tableStrategy or shardingStrategy:
//
//   - javaType: Integer, Long or String. The column's class in Java, on which HASH_MOD and
//     expressions depend. By default, the class depends on the value, and an integer is a Long.
//     shardkey doesn't evaluate strategies with BigInteger or BigDecimal
//
// Next to keyGenerators, workerIdAssigners has the worker-ID assigners. The property
// worker-id-assigner of a generator names one of them.
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
// reads it as octal, and expands 01..12 to 1..12. Other Groovy isn't supported. The prefixes
// <INTERVAL>, <LITERAL> and <GROOVY> are supported. A table can have at most 1,048,576 data nodes.
// Without actualDataNodes, the logical name is the only actual table.
//
// The last two expressions are patterns, for tables that are created at run time. t_order_${*}
// matches t_order_ followed by any number, and t_log_${yyyyMM} matches a table for each month. A
// pattern must not match the tables of another logical table.
//
// The actual tables of an auto table are name_0 to name_n-1. As in ShardingSphere, n comes from the
// algorithm: MOD and HASH_MOD (sharding-count), BOUNDARY_RANGE, VOLUME_RANGE or AUTO_INTERVAL.
//
// A data node is dataSource.table or dataSource.schema.table. The data source is ignored when
// looking up a table, because statements can't name it: INSERT INTO app.t_order_3 is an INSERT into
// t_order for every schema app. If the data node has a schema, a statement with a schema must name
// that one. The same is true of a table without actualDataNodes whose logical name is schema.table.
// Two logical tables must not have an actual table of the same name, unless their schemas differ.
//
// shardkey generates no keys for a table that isn't in a rule. Some tables were probably forgotten:
// tables with the name of a sharded table followed by numbers or dates (t_order_16,
// t_order_2026_01), and tables whose name differs from an actual table's only in its numbers.
// [Live.Unlisted] returns an error for such a name.
//
// # Sharding
//
// [Table.Sharding] computes the place of a row from the values of its sharding columns, with the
// same result as ShardingSphere. If shardkey can't evaluate a strategy or an algorithm, Sharding.Err
// has the reason. See docs/reference/sharding.md for the supported algorithms.
//
// The properties gene-column and gene-bits of a generator of int64 keys make its keys carry the
// shard of another column. [Table.Gene] computes these shard bits. A strategy that doesn't match
// them is an error.
//
// # Properties
//
// The value of a property is a string or a list of strings. In a value, ${NAME} stands for an
// environment variable, which must be set. ${NAME::default} has a default. It can also be written
// as $${NAME::default}, as in ShardingSphere 5.5. \${ stands for the characters "${". Errors and
// descriptions never contain the value of a variable. In YAML's flow style ({a: b}), a value with
// ${…} must be in quotes.
package rule
