import type { IconName } from "../parts/icons.tsx";
import { lazyPage } from "./lazy-page.tsx";

/** A page of the console, as the menu shows it. */
export interface MenuEntry {
  readonly path: string;
  readonly name: string;
  readonly icon: IconName;
  /** Scope that a token needs to see anything on the page. */
  readonly scope: string | null;
}

export const MENU: readonly MenuEntry[] = [
  { path: "/console", name: "Overview", icon: "overview", scope: null },
  { path: "/console/tasks", name: "Tasks", icon: "tasks", scope: "tasks:read" },
  { path: "/console/agents", name: "Agents", icon: "agents", scope: "agents:read" },
  { path: "/console/approvals", name: "Approvals", icon: "approvals", scope: "approvals:write" },
  { path: "/console/vault", name: "Vault", icon: "vault", scope: "vault:read" },
  { path: "/console/connectors", name: "Connectors", icon: "connectors", scope: "connectors:read" },
  { path: "/console/ledger", name: "Ledger", icon: "ledger", scope: "ledger:read" },
  { path: "/console/settings", name: "Settings", icon: "settings", scope: null },
];

/** Each page is a separate script, loaded when the page is first opened. */
export const Overview = lazyPage(async () => (await import("../pages/overview/overview.tsx")).Overview);
export const TaskList = lazyPage(async () => (await import("../pages/tasks/task-list.tsx")).TaskList);
export const TaskPage = lazyPage(async () => (await import("../pages/tasks/task-page.tsx")).TaskPage);
export const AgentList = lazyPage(async () => (await import("../pages/agents/agent-list.tsx")).AgentList);
export const AgentNew = lazyPage(async () => (await import("../pages/agents/agent-new.tsx")).AgentNew);
export const AgentPage = lazyPage(async () => (await import("../pages/agents/agent-page.tsx")).AgentPage);
export const Approvals = lazyPage(async () => (await import("../pages/approvals/approvals.tsx")).Approvals);
export const Vault = lazyPage(async () => (await import("../pages/vault/vault.tsx")).Vault);
export const DocumentPage = lazyPage(
  async () => (await import("../pages/vault/document-page.tsx")).DocumentPage,
);
export const Connectors = lazyPage(
  async () => (await import("../pages/connectors/connectors.tsx")).Connectors,
);
export const ConnectorNew = lazyPage(
  async () => (await import("../pages/connectors/connector-new.tsx")).ConnectorNew,
);
export const ConnectorPage = lazyPage(
  async () => (await import("../pages/connectors/connector-page.tsx")).ConnectorPage,
);
export const Ledger = lazyPage(async () => (await import("../pages/ledger/ledger.tsx")).Ledger);
export const EntryPage = lazyPage(async () => (await import("../pages/ledger/entry-page.tsx")).EntryPage);
export const Settings = lazyPage(async () => (await import("../pages/settings/settings.tsx")).Settings);
