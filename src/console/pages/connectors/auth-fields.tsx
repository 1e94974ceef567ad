import type { JSX } from "preact";
import { Select, TextField } from "../../parts/field.tsx";
import type { OpenApiDraft } from "./drafts.ts";
import { SecretField } from "./secret-input.tsx";

const AUTHS: readonly (readonly [OpenApiDraft["auth"], string])[] = [
  ["none", "None"],
  ["bearer", "Bearer token"],
  ["basic", "User and password (Basic)"],
  ["header", "Header"],
  ["query", "Query parameter"],
];

/** The credentials for calling the API. */
export function AuthFields({
  draft,
  change,
  errors,
}: {
  readonly draft: OpenApiDraft;
  readonly change: (draft: OpenApiDraft) => void;
  readonly errors: ReadonlyMap<string, string>;
}): JSX.Element {
  const { auth } = draft;
  const isNamed = auth === "header" || auth === "query";
  return (
    <>
      <Select
        label="Authentication"
        value={auth}
        options={AUTHS}
        change={(value) => change({ ...draft, auth: AUTHS.find(([name]) => name === value)?.[0] ?? "none" })}
        error={errors.get("/auth")}
      />
      {auth === "bearer" && (
        <SecretField
          label="Bearer token"
          value={draft.token}
          change={(token) => change({ ...draft, token })}
          error={errors.get("/auth/token")}
        />
      )}
      {auth === "basic" && (
        <div class="form-columns">
          <TextField
            label="User"
            value={draft.username}
            change={(username) => change({ ...draft, username })}
            error={errors.get("/auth/username")}
          />
          <SecretField
            label="Password"
            value={draft.password}
            change={(password) => change({ ...draft, password })}
            error={errors.get("/auth/password")}
          />
        </div>
      )}
      {isNamed && (
        <div class="form-columns">
          <TextField
            label={auth === "header" ? "Header" : "Parameter"}
            placeholder={auth === "header" ? "X-Api-Key" : "api_key"}
            required
            value={draft.name}
            change={(name) => change({ ...draft, name })}
            error={errors.get("/auth/name")}
          />
          <SecretField
            label="Value"
            value={draft.value}
            change={(value) => change({ ...draft, value })}
            error={errors.get("/auth/value")}
          />
        </div>
      )}
    </>
  );
}
