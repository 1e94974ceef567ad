import type { Migration } from "../migrate.ts";
import { ACCESS } from "./001-access.ts";
import { LEDGER } from "./002-ledger.ts";
import { VAULT } from "./003-vault.ts";
import { TASKS } from "./004-tasks.ts";
import { DOORS } from "./005-doors.ts";
import { NODES } from "./006-nodes.ts";
import { KEYS } from "./007-keys.ts";

/**
 * In order. Never change a released migration: add another one. Servers of the version before go on while it is applied, so
 * it must not take away what they use. It must be quick as well: they wait for it, and refuse calls after 5 seconds. `isAdditive`
 * also lets them start. Together the migrations make the same tables as those of SQLite, which
 * test/store/postgres/schema.test.ts compares.
 */
export const MIGRATIONS: readonly Migration[] = [ACCESS, LEDGER, VAULT, TASKS, DOORS, NODES, KEYS];
