/** A process with a user for a program: prints the user, and waits to be killed. Argument: the data directory. */
import { openUsers } from "./programs.ts";

const { uid, home } = await openUsers(process.argv[2] ?? "")
  .usersOf(1)
  .take();
process.stdout.write(JSON.stringify({ uid, home }));
setInterval(() => {}, 60_000);
