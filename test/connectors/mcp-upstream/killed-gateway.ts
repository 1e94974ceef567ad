/** A process with one upstream. It prints the upstream's pid and waits to be killed. */
import { openFake, pidOf } from "./support.ts";

const up = openFake("plain");
process.stdout.write(`${await pidOf(up)}\n`);
setInterval(() => {}, 60_000);
