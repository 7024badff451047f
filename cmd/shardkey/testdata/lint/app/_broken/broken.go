package broken

var x = y
