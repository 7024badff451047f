package main

var etcds = group{dir: "keygen/etcd", servers: true, mutants: []mutant{
	{what: "swap: the record that was read is not compared", in: "store.CompareAndSet", by: "TestStore_conforms",
		old: "!found.Same(prev) {", new: "!found.Same(found) {"},
	{what: "swap: a write since the read is overwritten", in: "store.CompareAndSet", by: "TestStore_conforms",
		old: `"=", revision)`, new: `">", revision-revision-1)`},
	{what: "swap: one that was refused is taken for done", in: "store.CompareAndSet", by: "TestStore_conforms",
		old: "return r.Succeeded, nil", new: "return r.Succeeded || true, nil"},
	{what: "key: worker ids share a record", in: "store.key", by: "TestStore_conforms",
		old: "strconv.FormatInt(workerID, 10)", new: "strconv.FormatInt(workerID/10, 10)"},
	{what: "key: namespaces share records", in: "newStore", by: "TestStore_conforms",
		old: "prefix + namespace + ", new: "prefix + "},
	{what: "list: a record that is not understood is not there", in: "store.List", by: "TestStore_foreignRecord",
		old: "record, err := workerid.ParseRecord(id, string(kv.Value))", new: "record, err := workerid.ParseRecord(id, string(kv.Value))\n\t\tif err != nil {\n\t\t\tcontinue\n\t\t}"},
}}

var zookeepers = group{dir: "keygen/zookeeper", servers: true, mutants: []mutant{
	{what: "swap: the record that was read is not compared", in: "store.CompareAndSet", by: "TestStore_conforms",
		old: "!found.Same(prev) {", new: "!found.Same(found) {"},
	{what: "swap: a write since the read is overwritten", in: "store.CompareAndSet", by: "TestStore_conforms",
		old: "data, version)", new: "data, version-version-1)"},
	{what: "swap: one that was refused is taken for done", in: "swapped", by: "TestStore_conforms",
		old: "return false, nil", new: "return true, nil"},
	{what: "node: worker ids share a record", in: "store.node", by: "TestStore_conforms",
		old: "strconv.FormatInt(workerID, 10)", new: "strconv.FormatInt(workerID/10, 10)"},
	{what: "node: namespaces share records", in: "newStore", by: "TestStore_conforms",
		old: "path + \"/\" + namespace", new: "path + \"/shared\""},
	{what: "list: a record that is not understood is not there", in: "store.List", by: "TestStore_foreignRecord",
		old: "r, err := workerid.ParseRecord(id, string(n.data))", new: "r, err := workerid.ParseRecord(id, string(n.data))\n\t\t\tif err != nil {\n\t\t\t\tcontinue\n\t\t\t}"},
}}
