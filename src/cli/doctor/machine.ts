import { totalmem } from "node:os";
import { openFilesLimit } from "../../base/open-files/count.ts";
import { COMFORTABLE_OPEN_FILES, FEWEST_OPEN_FILES } from "../../http/connections/plan.ts";
import { bytesText, type Finding, fail, ok, warn } from "./finding.ts";

const LITTLE_MEMORY = 512 * 1024 * 1024;
const RAISE = `raise it to ${COMFORTABLE_OPEN_FILES} or more: ulimit -n, or LimitNOFILE= in a systemd unit`;

/** The limits of this machine and of this process. A service may have others. */
export function checkMachine(): Finding[] {
  return [openFiles(openFilesLimit()), memory(process.constrainedMemory(), totalmem())];
}

export function openFiles(limit: number | null): Finding {
  if (limit === null) return ok("open files", "this system reports no limit");
  if (limit < FEWEST_OPEN_FILES)
    return fail("open files", `the limit of ${limit} is too low for a server`, RAISE);
  if (limit < COMFORTABLE_OPEN_FILES) {
    return warn("open files", `the limit of ${limit} lets few clients connect at once`, RAISE);
  }
  return ok("open files", `up to ${limit}`);
}

/** @param constrained the limit of this process's control group in bytes; more than the machine has, or 0, is none */
export function memory(constrained: number, total: number): Finding {
  const isLimited = constrained > 0 && constrained < total;
  const bytes = isLimited ? constrained : total;
  const message = `${bytesText(bytes)}${isLimited ? ", the limit of this control group" : ""}`;
  if (bytes >= LITTLE_MEMORY) return ok("memory", message);
  return warn(
    "memory",
    message,
    "give the server 512 MB or more: documents are read by processes of their own",
  );
}
