import type { Migration } from "../migrate.ts";
import { FIRST_TASK } from "./001-first-task.ts";
import { VAULT } from "./002-vault.ts";
import { CONNECTORS } from "./003-connectors.ts";
import { EVIDENCE } from "./004-evidence.ts";
import { DURABLE_TASKS } from "./005-durable-tasks.ts";
import { APPROVALS } from "./006-approvals.ts";
import { NOTIFY } from "./007-notify.ts";
import { STOP } from "./008-stop.ts";
import { BUDGETS } from "./009-budgets.ts";
import { SESSIONS } from "./010-sessions.ts";
import { USAGE } from "./011-usage.ts";
import { LISTS } from "./012-lists.ts";
import { HEADS } from "./013-heads.ts";
import { APPROVED_DEFINITIONS } from "./014-approved-definitions.ts";
import { SEALS } from "./015-seals.ts";
import { NODE_HEAD } from "./016-node-head.ts";
import { TOOL_SCHEMAS_AS_TEXT } from "./017-tool-schemas-as-text.ts";
import { RESPONSES } from "./018-responses.ts";
import { TASK_MESSAGES } from "./019-task-messages.ts";
import { BACKGROUND_RESPONSES } from "./020-background-responses.ts";
import { LONG_TEXTS } from "./021-long-texts.ts";
import { TOKEN_COUNT } from "./022-token-count.ts";

/** In order. Never change a released migration: add another one. */
export const MIGRATIONS: readonly Migration[] = [
  FIRST_TASK,
  VAULT,
  CONNECTORS,
  EVIDENCE,
  DURABLE_TASKS,
  APPROVALS,
  NOTIFY,
  STOP,
  BUDGETS,
  SESSIONS,
  USAGE,
  LISTS,
  HEADS,
  APPROVED_DEFINITIONS,
  SEALS,
  NODE_HEAD,
  TOOL_SCHEMAS_AS_TEXT,
  RESPONSES,
  TASK_MESSAGES,
  BACKGROUND_RESPONSES,
  LONG_TEXTS,
  TOKEN_COUNT,
];

/** The first schema version that includes a migration. */
export function versionOf(migration: Migration): number {
  return MIGRATIONS.indexOf(migration) + 1;
}
