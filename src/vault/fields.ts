import Type from "typebox";
import { MEMORY_SCOPE, MEMORY_SCOPE_LENGTH } from "../access/memory-scope.ts";

/** Fields that the vault's routes and tools have in common. */
export const ScopePath = Type.String({ pattern: MEMORY_SCOPE, maxLength: MEMORY_SCOPE_LENGTH });
export const Query = Type.String({ minLength: 1, maxLength: 100_000, description: "What is looked for." });
export const TopK = Type.Integer({ minimum: 1, maximum: 100 });
export const Scopes = Type.Array(ScopePath, {
  minItems: 1,
  maxItems: 32,
  description: "Narrow the search to these paths.",
});
/** Any name that can be seen: no control characters, no white space at its ends. */
export const METADATA_KEY =
  "^[^\\s\\u0000-\\u001f\\u007f]([^\\u0000-\\u001f\\u007f]{0,62}[^\\s\\u0000-\\u001f\\u007f])?$";
/** Bytes of a document's body (contract, section 3). */
export const DOCUMENT_BYTES = 50 * 1024 * 1024;
export const SEARCH_MODES = ["hybrid", "keyword", "vector"] as const;
export const MetadataValues = Type.Record(
  Type.String({ pattern: METADATA_KEY }),
  Type.Union([Type.String({ maxLength: 1_000 }), Type.Number(), Type.Boolean()]),
  { maxProperties: 32, additionalProperties: false },
);
export const Mode = Type.Enum([...SEARCH_MODES]);
export const MaxCharacters = Type.Integer({
  minimum: 1,
  maximum: 10_000_000,
  description: "Characters of all passages together.",
});
export const Title = Type.String({ minLength: 1, maxLength: 1_000, pattern: "\\S" });
export const DocumentId = Type.String({ minLength: 1, maxLength: 64, description: "doc_…" });
export const ContentType = Type.String({ minLength: 1, maxLength: 200, description: "Default text/plain." });
export const SourceUri = Type.String({ minLength: 1, maxLength: 2_000, description: "Where it comes from." });
