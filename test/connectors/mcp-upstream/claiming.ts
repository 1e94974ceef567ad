/**
 * A process that claims a user, reports whether it could, and waits to be killed. Arguments: the directory, and the
 * user.
 */
import { UserClaims } from "../../../src/connectors/mcp-upstream/stdio/user-claims.ts";

const [directory = "", uid] = process.argv.slice(2);
process.stdout.write(String(new UserClaims([directory]).claim(Number(uid))));
setInterval(() => {}, 60_000);
