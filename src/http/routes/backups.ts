import { Elysia } from "elysia";
import Type from "typebox";

import type { Workspaces } from "../../access/workspaces.ts";
import { type EndpointContext, endpoint } from "../endpoint.ts";
import { requireOperator } from "./workspace.ts";

export interface BackupRouteParts {
  readonly workspaces: Pick<Workspaces, "list">;
}

const NewBackup = Type.Object(
  { file: Type.String({ minLength: 1, maxLength: 255 }), with_keys: Type.Boolean() },
  { additionalProperties: false },
);

/**
 * Records in all ledgers that the operator makes a backup, with the file's name. The command line makes it. Neither in the
 * contract nor in the API document.
 */
export function backupRoutes(endpoints: EndpointContext, { workspaces }: BackupRouteParts) {
  const record = endpoint(
    endpoints,
    {
      action: "store.backup",
      scope: "settings:write",
      summary: "Record that a backup is made",
      tag: "Operator",
      body: NewBackup,
      status: 204,
    },
    async ({ call, body: { file, with_keys: withKeys } }) => {
      requireOperator(call.caller.actor);
      const detail = { file, with_keys: withKeys ? 1 : 0 };
      call.about({ detail });
      const others = workspaces.list().filter(({ id }) => id !== call.caller.workspaceId);
      // Together, so that they share commits.
      await Promise.all(
        others.map((workspace) => {
          const elsewhere = call.elsewhere(workspace);
          elsewhere.about({ detail });
          return elsewhere.commit(async (_, record) => void (await record()));
        }),
      );
      return { status: 204 };
    },
  );
  return new Elysia({ prefix: "/operator/backups" }).post("", record.handle, {
    ...record.hook,
    detail: { hide: true },
  });
}
