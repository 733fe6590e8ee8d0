// Loaded before a server: it believes that it runs on a machine of its own, so that no other can see at once that it is
// gone, and its leases run out by time.
const fs = require("node:fs")
const { syncBuiltinESMExports } = require("node:module")

const read = fs.readFileSync
fs.readFileSync = (path, ...how) =>
  path === "/proc/sys/kernel/random/boot_id" ? `machine-${process.pid}\n` : read(path, ...how)
syncBuiltinESMExports()
