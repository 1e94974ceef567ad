/**
 * A process that claims a user, reports whether it could, and waits to be killed. Arguments: the directory, and the
 * user.
 */
import { UserClaims } from "../../../src/connectors/mcp-upstream/stdio/user-claims.ts";

const [directory = "", uid] = process.argv.slice(2);
const claims = new UserClaims([directory]);
process.stdout.write(String(claims.claim(Number(uid))));
// A claim lasts only as long as its object.
setInterval(() => claims, 60_000);
