package driver

// KnownDefects are cases of the driver's tests that fail on a server by a defect
// of the driver that is known, by "server/shape: case", each with what happens.
// A case in here that passes fails its test: take it out. The table should be
// empty.
var KnownDefects = map[string]string{}
