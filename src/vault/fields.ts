import Type from "typebox";
import { MEMORY_SCOPE, MEMORY_SCOPE_LENGTH } from "../access/memory-scope.ts";

/** Fields shared by the vault's routes and tools. */

/** Maximum size in bytes of a document request (contract, section 3). */
export const DOCUMENT_BYTES = 50 * 1024 * 1024;
/** Any visible name: no control characters, and no white space at either end. */
export const METADATA_KEY =
  "^[^\\s\\u0000-\\u001f\\u007f]([^\\u0000-\\u001f\\u007f]{0,62}[^\\s\\u0000-\\u001f\\u007f])?$";
export const SEARCH_MODES = ["hybrid", "keyword", "vector"] as const;

export const ScopePath = Type.String({ pattern: MEMORY_SCOPE, maxLength: MEMORY_SCOPE_LENGTH });
export const SourceUri = Type.String({
  minLength: 1,
  maxLength: 2_000,
  description: "Where the document comes from.",
});
export const DocumentId = Type.String({ minLength: 1, maxLength: 64, description: "doc_…" });

const MetadataValues = Type.Record(
  Type.String({ pattern: METADATA_KEY }),
  Type.Union([Type.String({ maxLength: 1_000 }), Type.Number(), Type.Boolean()]),
  { maxProperties: 32, additionalProperties: false },
);

export const SEARCH_FIELDS = {
  query: Type.String({ minLength: 1, maxLength: 100_000, description: "What to search for." }),
  top_k: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  scopes: Type.Optional(
    Type.Array(ScopePath, { minItems: 1, maxItems: 32, description: "Narrow the search to these paths." }),
  ),
  filter: Type.Optional(MetadataValues),
  mode: Type.Optional(Type.Enum([...SEARCH_MODES])),
  max_chars: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 10_000_000,
      description: "The maximum number of characters in all passages together.",
    }),
  ),
};

export const DOCUMENT_FIELDS = {
  id: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 64,
      description:
        "doc_…: the document to replace. A caller that sees everything may also choose the id of a new document.",
    }),
  ),
  title: Type.String({ minLength: 1, maxLength: 1_000, pattern: "\\S" }),
  content_type: Type.Optional(
    Type.String({ minLength: 1, maxLength: 200, description: "Default text/plain." }),
  ),
  source_uri: Type.Optional(SourceUri),
  metadata: Type.Optional(MetadataValues),
};
