/** The texts that a model expects before documents and queries. */
export interface Prefixes {
  /** Identifies the pair of texts. If either changes, the id MUST change too, because stored vectors carry it. */
  readonly id: string;
  readonly document: string;
  readonly query: string;
}

const NONE: Prefixes = { id: "none", document: "", query: "" };
const SENTENCE = "Represent this sentence for searching relevant passages: ";
const WEB_SEARCH =
  "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:";

/**
 * Prefixes by model name; the first matching row applies. The texts are those of each family's own model card:
 * nomic-ai/nomic-embed-text-v1.5 and v2-moe; intfloat/multilingual-e5-large-instruct; intfloat/e5-base-v2 and
 * multilingual-e5-base; BAAI/bge-base-en-v1.5 (its Chinese variants and bge-m3 differ);
 * mixedbread-ai/mxbai-embed-large-v1; Snowflake/snowflake-arctic-embed-m and snowflake-arctic-embed-m-v2.0 (Ollama:
 * snowflake-arctic-embed2); google/embeddinggemma-300m; Qwen/Qwen3-Embedding-0.6B. Models of OpenAI and Gemini need
 * no prefix.
 */
const FAMILIES: readonly (readonly [name: RegExp, prefixes: Prefixes])[] = [
  [/nomic-embed-text/, { id: "nomic", document: "search_document: ", query: "search_query: " }],
  [/\be5\b.*\binstruct\b/, { id: "e5-instruct", document: "", query: `${WEB_SEARCH} ` }],
  [/\be5\b/, { id: "e5", document: "passage: ", query: "query: " }],
  [/\bbge-(?:small|base|large)\b(?!-zh)/, { id: "bge-en", document: "", query: SENTENCE }],
  [/\bmxbai-embed-large/, { id: "mxbai", document: "", query: SENTENCE }],
  [/\barctic-embed(?:2|.*-v2)/, { id: "arctic-2", document: "", query: "query: " }],
  [/\barctic-embed/, { id: "arctic", document: "", query: SENTENCE }],
  [
    /\bembeddinggemma/,
    { id: "embeddinggemma", document: "title: none | text: ", query: "task: search result | query: " },
  ],
  [/\bqwen3-embedding/, { id: "qwen3", document: "", query: WEB_SEARCH }],
];

/**
 * The texts to put before documents and queries.
 * @param model `<provider>/<model>`; only the part after the provider matters
 */
export function prefixesOf(model: string): Prefixes {
  const name = model.slice(model.indexOf("/") + 1).toLowerCase();
  return FAMILIES.find(([pattern]) => pattern.test(name))?.[1] ?? NONE;
}
