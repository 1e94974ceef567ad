import { type Command, Option } from "commander";
import { command, plain } from "../options.ts";
import { type CheckpointOptions, printCheckpoint } from "./checkpoint.ts";
import { EXPORT_FORMATS, type ExportOptions, exportLedger } from "./export.ts";
import { type KeyOptions, printKey } from "./key.ts";
import { type RotateKeyOptions, rotateLedgerKey } from "./rotate-key.ts";
import type { VerifyOptions } from "./verify.ts";

const VERIFY_HELP = `
No server is needed, and none is disturbed: nothing is written. What lies in the directory can be made anew by
whoever may write it, except for what was kept elsewhere. Give that along:
  gatehouse ledger verify --checkpoint /srv/worm/checkpoints --key ledger.vkey
  gatehouse ledger verify --bundle evidence.zip --key 'gatehouse/0123456789abcdef/default+1a2b3c4d+A…'

Exit codes: 0 holds, 1 tampered with (says where), 3 cannot be decided (says what is missing).`;

const EXPORT_HELP = `
Formats:
  article14   a zip that proves what is in it, and what a filter left out, with no server: for an auditor
  ndjson      a line of JSON for each entry
  csv         RFC 4180, the first row names the columns
  json        one array

The file is there once all of it is; one that is there already is replaced. With --output - it goes to
standard output, and an exit code other than 0 says that it is not whole. Reading the ledger is itself
recorded.`;

const ROTATE_HELP = `
The new verifier key is printed: give it to those who check. Checkpoints that were signed before stay
good, and who trusts the old key goes on from the checkpoint at the change, which both keys have signed.
All workspaces of the node share the key.

With --lost, where the file of the old key is gone: nothing but an entry speaks for the new key, so that
what came before it can be checked with the old verifier key alone. Stop the server first.`;

export function ledgerCommand(): Command {
  return plain("ledger", "export and verify the evidence")
    .addCommand(verifyCommand())
    .addCommand(exportCommand())
    .addCommand(checkpointCommand())
    .addCommand(keyCommand())
    .addCommand(rotateKeyCommand());
}

function verifyCommand(): Command {
  return plain("verify", "check that nothing in the ledgers was changed, added or taken away")
    .option("--data <dir>", "data directory (default ./gatehouse-data, or GATEHOUSE_DATA)")
    .option("--bundle <file>", "an exported bundle in place of a data directory")
    .option("--key <key>", "the ledger's verifier key, or a file with it (default: those that lie inside)")
    .option("--checkpoint <file>", "checkpoints that were kept elsewhere")
    .option("--workspace <name>", "of a data directory this workspace alone (default: all)")
    .option("--json", "print JSON")
    .addHelpText("after", VERIFY_HELP)
    .action(async (options: VerifyOptions) => {
      const { verifyLedger } = await import("./verify.ts");
      return verifyLedger(options);
    });
}

function exportCommand(): Command {
  return verb("export", "write the ledger, or what filters let through, to a file")
    .requiredOption("--output <file>", "where to; - is standard output")
    .addOption(new Option("--format <format>", "see below").choices([...EXPORT_FORMATS]).default("article14"))
    .option("--from <time>", "entries at or after this time, such as 2026-01-01T00:00:00Z")
    .option("--to <time>", "entries before this time")
    .option("--date <day>", "entries of this UTC day, such as 2026-01-31")
    .option("--agent <agent>", "entries about this agent")
    .option("--actor <actor>", "entries of this actor, such as token:tok_… or user:ada")
    .option("--action <action>", "entries of this action, such as task.dispatch")
    .option("--tier <n>", "entries about this tier")
    .addHelpText("after", EXPORT_HELP)
    .action((options: ExportOptions) => exportLedger(options));
}

function checkpointCommand(): Command {
  return verb("checkpoint", "print the head of the ledger's tree, signed now, to be kept elsewhere")
    .option("--output <file>", "write it to a file in place of standard output", "-")
    .option("--json", "print JSON")
    .action((options: CheckpointOptions) => printCheckpoint(options));
}

function keyCommand(): Command {
  return verb("key", "print the key that checkpoints are checked with")
    .option("--json", "print JSON, with the keys before it")
    .action((options: KeyOptions) => printKey(options));
}

function rotateKeyCommand(): Command {
  return verb("rotate-key", "change the key that checkpoints are signed with")
    .option("--lost", "make a new key where the old one is gone")
    .option("--json", "print JSON, with the keys before it")
    .addHelpText("after", ROTATE_HELP)
    .action((options: RotateKeyOptions) => rotateLedgerKey(options));
}

function verb(name: string, description: string): Command {
  return command(name, description).option("--workspace <name>", "workspace", "default");
}
