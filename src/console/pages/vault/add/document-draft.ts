import type { VaultDocument } from "../../../../http/api.ts";
import type { CallOptions } from "../../../api/client.ts";
import { readPairs, writePairs } from "../pairs.ts";
import type { FileFields } from "./body.ts";
import { scopeError } from "./scope-field.tsx";

/** A document as entered in the form. */
export interface DocumentDraft {
  readonly title: string;
  readonly scope: string;
  readonly type: string;
  readonly text: string;
  readonly source: string;
  readonly metadata: string;
}

export function emptyDraft(scope: string): DocumentDraft {
  return { title: "", scope, type: "text/plain", text: "", source: "", metadata: "" };
}

export function isSameDraft(one: DocumentDraft, other: DocumentDraft): boolean {
  const fields = Object.keys(one) as (keyof DocumentDraft)[];
  return fields.every((field) => one[field] === other[field]);
}

/** A draft of a document without its text. */
export function draftOf(document: VaultDocument): DocumentDraft {
  const { title, scope, source_uri: source, metadata } = document;
  return { ...emptyDraft(scope), title, source: source ?? "", metadata: writePairs(metadata) };
}

/** Errors found before sending, named like the server's fields. */
export function errorsOf(draft: DocumentDraft, hasText: boolean): ReadonlyMap<string, string> {
  const errors = new Map<string, string>();
  const scope = scopeError(draft.scope.trim());
  if (scope !== undefined) errors.set("/scope", scope);
  if (draft.title.trim() === "") errors.set("/title", "Give it a title");
  if (hasText && draft.text.trim() === "") errors.set("/text", "Paste or type its text");
  const { error } = readPairs(draft.metadata);
  if (error !== undefined) errors.set("/metadata", error);
  return errors;
}

/** All fields except the content. */
export function fieldsOf(draft: DocumentDraft, type: string, id?: string): FileFields {
  return {
    ...(id === undefined ? {} : { id }),
    title: draft.title.trim(),
    scope: draft.scope.trim(),
    content_type: type,
    ...(draft.source.trim() === "" ? {} : { source_uri: draft.source.trim() }),
    metadata: readPairs(draft.metadata).pairs ?? {},
  };
}

export function requestOf(
  draft: DocumentDraft,
  id?: string,
): CallOptions<"POST /v1/vault/documents">["body"] {
  return {
    ...(fieldsOf(draft, draft.type, id) as CallOptions<"POST /v1/vault/documents">["body"]),
    text: draft.text,
  };
}

/** The error of the metadata. The server names a single pair. */
export function metadataError(errors: ReadonlyMap<string, string>): string | undefined {
  for (const [path, message] of errors) {
    if (path === "/metadata") return message;
    if (path.startsWith("/metadata/")) return `${path.slice("/metadata/".length)}: ${message}`;
  }
  return undefined;
}
