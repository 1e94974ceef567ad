import { expect, test } from "bun:test";
import { prefixesOf } from "../../../src/models/embed/embedder.ts";

const SENTENCE = "Represent this sentence for searching relevant passages: ";
const WEB = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:";

test.each([
  ["openai/text-embedding-3-small", "none", "", ""],
  ["google/gemini-embedding-001", "none", "", ""],
  ["local/all-minilm", "none", "", ""],
  ["local/bge-m3", "none", "", ""],
  ["local/BAAI/bge-base-zh-v1.5", "none", "", ""],
  ["local/base5-model", "none", "", ""],
  // The provider's name does not matter.
  ["e5/some-model", "none", "", ""],
  ["nomic-embed-text/some-model", "none", "", ""],
  ["local/nomic-embed-text", "nomic", "search_document: ", "search_query: "],
  ["local/hf.co/nomic-ai/nomic-embed-text-v2-moe-GGUF:Q8_0", "nomic", "search_document: ", "search_query: "],
  ["local/intfloat/multilingual-e5-large", "e5", "passage: ", "query: "],
  ["local/e5-base-v2", "e5", "passage: ", "query: "],
  ["local/intfloat/multilingual-e5-large-instruct", "e5-instruct", "", `${WEB} `],
  ["local/BAAI/bge-small-en-v1.5", "bge-en", "", SENTENCE],
  ["local/bge-large:335m", "bge-en", "", SENTENCE],
  ["local/mxbai-embed-large", "mxbai", "", SENTENCE],
  ["local/snowflake-arctic-embed:110m", "arctic", "", SENTENCE],
  ["local/snowflake-arctic-embed-m-v1.5", "arctic", "", SENTENCE],
  ["local/snowflake-arctic-embed2", "arctic-2", "", "query: "],
  ["local/Snowflake/snowflake-arctic-embed-l-v2.0", "arctic-2", "", "query: "],
  ["local/embeddinggemma", "embeddinggemma", "title: none | text: ", "task: search result | query: "],
  ["local/Qwen/Qwen3-Embedding-0.6B", "qwen3", "", WEB],
])("%s has the prefixes %s", (model, id, document, query) => {
  expect(prefixesOf(model)).toEqual({ id, document, query });
});
