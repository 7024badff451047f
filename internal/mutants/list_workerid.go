package main

var workerids = group{dir: "keygen/workerid", servers: true}
