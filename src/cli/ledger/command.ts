import { type Command, Option } from "commander";
import { command, plain } from "../options.ts";
import { type CheckpointOptions, printCheckpoint } from "./checkpoint.ts";
import { EXPORT_FORMATS, type ExportOptions, exportLedger } from "./export.ts";
import { type KeyOptions, printKey } from "./key.ts";
import { type RotateKeyOptions, rotateLedgerKey } from "./rotate-key.ts";
import type { VerifyOptions } from "./verify.ts";

const VERIFY_HELP = `
Needs no server and writes nothing, so it can run alongside one. Anyone who can write to the directory can
rewrite everything in it, so also give it what you keep elsewhere:
  gatehouse ledger verify --checkpoint /srv/worm/checkpoints --key ledger.vkey
  gatehouse ledger verify --bundle evidence.zip --key 'gatehouse/0123456789abcdef/default+1a2b3c4d+A…'

Exit codes: 0 holds, 1 tampered with (says where), 3 cannot be decided (says what is missing).`;

const EXPORT_HELP = `
Formats:
  article14   a zip for an auditor: proves its content, and what a filter left out, without a server
  ndjson      one line of JSON per entry
  csv         RFC 4180; the first row names the columns
  json        one array

The file appears once it is complete, and replaces an existing one. With --output - it goes to standard
output; an exit code other than 0 means that it is incomplete. Reading the ledger is itself recorded.`;

const ROTATE_HELP = `
Prints the new verifier key: give it to everyone who verifies the ledger. Earlier checkpoints stay valid.
Anyone who trusts the old key can continue from the checkpoint at the change, which both keys have signed.
All workspaces of the node share the key.

Use --lost if the file of the old key is lost. Then only an entry vouches for the new key, so anything before
it can only be verified with the old verifier key. Stop the server first.`;

export function ledgerCommand(): Command {
  return plain("ledger", "export and verify the ledgers")
    .addCommand(verifyCommand())
    .addCommand(exportCommand())
    .addCommand(checkpointCommand())
    .addCommand(keyCommand())
    .addCommand(rotateKeyCommand());
}

function verifyCommand(): Command {
  return plain("verify", "check that nothing in the ledgers was changed, added or removed")
    .option("--data <dir>", "data directory (default ./gatehouse-data, or GATEHOUSE_DATA)")
    .option("--bundle <file>", "an exported bundle, instead of a data directory")
    .option("--store [url]", "a store in PostgreSQL, instead of a data directory (default GATEHOUSE_STORE)")
    .option("--key <key>", "the ledger's verifier key, or a file with it (default: the keys in the data)")
    .option("--checkpoint <file>", "a file of checkpoints that was kept elsewhere")
    .option("--workspace <name>", "only this workspace of the data directory (default: all)")
    .option("--json", "print JSON")
    .addHelpText("after", VERIFY_HELP)
    .action(async (options: VerifyOptions) => {
      const { verifyLedger } = await import("./verify.ts");
      return verifyLedger(options);
    });
}

function exportCommand(): Command {
  return verb("export", "write the ledger, or the entries that match filters, to a file")
    .requiredOption("--output <file>", "the file to write; - is standard output")
    .addOption(new Option("--format <format>", "see below").choices([...EXPORT_FORMATS]).default("article14"))
    .option("--from <time>", "entries at or after this time, such as 2026-01-01T00:00:00Z")
    .option("--to <time>", "entries before this time")
    .option("--date <day>", "entries of this UTC day, such as 2026-01-31")
    .option("--agent <agent>", "entries about this agent")
    .option("--actor <actor>", "entries caused by this actor, such as token:tok_… or user:ada")
    .option("--action <action>", "entries with this action, such as task.dispatch")
    .option("--tier <n>", "entries about this tier")
    .addHelpText("after", EXPORT_HELP)
    .action((options: ExportOptions) => exportLedger(options));
}

function checkpointCommand(): Command {
  return verb("checkpoint", "print the current head of the ledger's tree, newly signed, to be kept elsewhere")
    .option("--output <file>", "write it to a file instead of standard output", "-")
    .option("--json", "print JSON")
    .action((options: CheckpointOptions) => printCheckpoint(options));
}

function keyCommand(): Command {
  return verb("key", "print the key that verifies checkpoints")
    .option("--json", "print JSON, with earlier keys")
    .action((options: KeyOptions) => printKey(options));
}

function rotateKeyCommand(): Command {
  return verb("rotate-key", "replace the key that signs checkpoints")
    .option("--lost", "create a new key when the old one is lost")
    .option("--json", "print JSON, with earlier keys")
    .addHelpText("after", ROTATE_HELP)
    .action((options: RotateKeyOptions) => rotateLedgerKey(options));
}

function verb(name: string, description: string): Command {
  return command(name, description).option("--workspace <name>", "workspace", "default");
}
