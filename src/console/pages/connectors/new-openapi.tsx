import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Connector } from "../../../http/api.ts";
import { TextField } from "../../parts/field.tsx";
import { ProblemNote } from "../../parts/problem.tsx";
import { Unsaved } from "../../parts/unsaved.tsx";
import { AuthFields } from "./auth-fields.tsx";
import { CommonFields } from "./common-fields.tsx";
import { DocumentField } from "./document-field.tsx";
import { EMPTY_OPENAPI, isOpenApiTyped, openApiBody } from "./drafts.ts";
import { useAdding } from "./use-adding.ts";
import { useFirstFault } from "./use-first-fault.ts";

/** Adds an HTTP API from its OpenAPI document. */
export function NewOpenApi({ added }: { readonly added: (connector: Connector) => void }): JSX.Element {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState("");
  const [draft, setDraft] = useState(EMPTY_OPENAPI);
  const { action, errors, add } = useAdding();
  const form = useFirstFault(errors);
  return (
    <form
      ref={form}
      class="form"
      aria-label="Add an HTTP API"
      onSubmit={async (event) => {
        event.preventDefault();
        const connector = await add(openApiBody(name, scopes, draft));
        if (connector) added(connector);
      }}
    >
      <Unsaved isDirty={name !== "" || scopes !== "" || isOpenApiTyped(draft)} />
      <CommonFields
        name={name}
        scopes={scopes}
        changeName={setName}
        changeScopes={setScopes}
        errors={errors}
      />
      <DocumentField draft={draft} change={setDraft} error={errors.get("/spec")} />
      <TextField
        label="Base URL"
        type="url"
        placeholder="https://api.example.com/v1"
        hint="The API's address. Empty: the first server named in the document."
        value={draft.baseUrl}
        change={(baseUrl) => setDraft({ ...draft, baseUrl })}
        error={errors.get("/base_url")}
      />
      <AuthFields draft={draft} change={setDraft} errors={errors} />
      <ProblemNote problem={action.problem} />
      <div class="row">
        <button type="submit" class="button-main" disabled={action.isBusy}>
          {action.isBusy ? "Reading the document …" : "Add the connector"}
        </button>
        <span class="muted small">Each operation of the document becomes a tool.</span>
      </div>
    </form>
  );
}
