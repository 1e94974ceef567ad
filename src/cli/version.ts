import type { Command } from "commander";
import { COMMIT, VERSION } from "../base/version.ts";
import { plain } from "./options.ts";
import { print, printJson } from "./output.ts";

export function versionCommand(): Command {
  return plain("version", "print the version, the commit it was built from, and the runtime")
    .option("--json", "print JSON")
    .action((options: { json?: boolean }) => {
      const version = {
        version: VERSION,
        commit: COMMIT,
        bun: Bun.version,
        platform: `${process.platform}-${process.arch}`,
      };
      if (options.json) printJson(version);
      else
        print(`gatehouse ${VERSION} (${COMMIT ?? "from source"}, bun ${Bun.version}, ${version.platform})`);
    });
}
