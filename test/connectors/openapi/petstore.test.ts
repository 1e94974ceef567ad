import { expect, test } from "bun:test";
import { Compile } from "typebox/compile";
import type { ToolDescription } from "../../../src/connectors/source.ts";
import { expandTool } from "../../../src/connectors/tools/kept-tool.ts";
import { listOf, sourceOf, startApi } from "./api.ts";

const YAML = await Bun.file(`${import.meta.dir}/fixtures/petstore-3.0.yaml`).text();
const JSON_TEXT = await Bun.file(`${import.meta.dir}/fixtures/petstore-3.1.json`).text();

function named(tools: readonly ToolDescription[], name: string): ToolDescription {
  const tool = tools.find((each) => each.name === name);
  if (!tool) throw new Error(`there is no tool ${name}`);
  return tool;
}

test("a 3.0 document in YAML: an operation that cannot be called is omitted and named, the others are tools", async () => {
  const source = sourceOf(YAML);
  const tools = (await source.list(new AbortController().signal)).map(expandTool);
  expect(tools.map(({ name, destructive }) => [name, destructive])).toEqual([
    ["listPets", false],
    ["create_pet", true],
    ["get_pets_petId", false],
    ["replacePet", true],
    ["deletePet", true],
    ["uploadPhoto", true],
  ]);
  expect(source.omitted).toBe(
    '1 operation is not offered as a tool: POST /reports: it requires a body of type "application/pdf", which is not supported.',
  );
});

test("a tool has the operation's texts, its parameters as arguments, and what its binding needs", async () => {
  const tools = await listOf(YAML);
  expect(named(tools, "listPets")).toEqual({
    name: "listPets",
    title: "Lists pets",
    description: "Lists pets\n\nAll pets of the shop, newest first.",
    inputSchema: {
      type: "object",
      properties: {
        "X-Trace": { type: "string", description: "Pattern: ^(a+)+$" },
        limit: { type: "integer", exclusiveMinimum: 0, maximum: 100, default: 20, description: "How many." },
        tags: { type: "array", items: { type: "string" } },
        filter: { type: "object", properties: { colour: { type: "string" }, age: { type: "integer" } } },
      },
      required: [],
      additionalProperties: false,
    },
    annotations: {
      title: "Lists pets",
      readOnlyHint: true,
      destructiveHint: false,
      idempotentHint: true,
      openWorldHint: true,
    },
    destructive: false,
    binding: {
      method: "GET",
      path: "/pets",
      server: "https://eu.pets.example/v1",
      parameters: [
        { argument: "X-Trace", name: "X-Trace", in: "header", style: "simple", explode: false },
        { argument: "limit", name: "limit", in: "query", style: "form", explode: true },
        { argument: "tags", name: "tags", in: "query", style: "pipeDelimited", explode: false },
        { argument: "filter", name: "filter", in: "query", style: "deepObject", explode: false },
      ],
      body: null,
    },
  });
  expect(named(tools, "replacePet").description).toBe("Deprecated.\n\nPUT /pets/{petId}");
  expect(named(tools, "replacePet").annotations).toMatchObject({
    idempotentHint: true,
    destructiveHint: true,
  });
});

test("a schema that contains itself stays finite; fields only of answers are not arguments", async () => {
  const { inputSchema } = named(await listOf(YAML), "create_pet");
  expect(inputSchema).toEqual({
    type: "object",
    properties: {
      "X-Trace": { type: "string", description: "Pattern: ^(a+)+$" },
      body: { $ref: "#/$defs/Pet", description: "The pet to add." },
    },
    required: ["body"],
    additionalProperties: false,
    $defs: {
      Pet: {
        type: "object",
        properties: {
          name: { type: "string", minLength: 1, examples: ["Rex"] },
          kind: { type: ["string", "null"], enum: ["cat", "dog", null] },
          parents: { type: "array", maxItems: 2, items: { $ref: "#/$defs/Pet" } },
        },
        required: ["name"],
      },
    },
  });
});

test("the same name in two places gives two arguments; a form's bytes are in base64", async () => {
  const tools = await listOf(YAML);
  expect(named(tools, "deletePet").inputSchema).toEqual({
    type: "object",
    properties: {
      petId: { type: "string", description: "Which pet." },
      petId_query: { type: "boolean", description: "The same name elsewhere." },
    },
    required: ["petId"],
    additionalProperties: false,
  });
  expect(named(tools, "uploadPhoto").inputSchema).toMatchObject({
    properties: {
      body: {
        type: "object",
        required: ["file"],
        properties: {
          file: { type: "string", contentEncoding: "base64", description: "Bytes, encoded as base64." },
          note: { type: ["string", "null"] },
        },
      },
    },
    required: ["petId", "body"],
  });
});

test("a 3.1 document from a URL: references resolve to paths and bodies, a relative server to the document's URL", async () => {
  const api = startApi();
  try {
    api.answer(() => new Response(JSON_TEXT));
    const tools = await listOf(`${api.url}/docs/openapi.json`);
    expect(tools.map(({ name }) => name)).toEqual(["getPet", "head_pets_petId", "addPet", "writeNote"]);
    expect(named(tools, "addPet").binding).toMatchObject({
      server: `${api.url}/api/v2`,
      body: { kind: "json", mediaType: "application/vnd.pets+json" },
    });
    expect(named(tools, "addPet").inputSchema).toEqual({
      type: "object",
      properties: {
        body: {
          allOf: [{ type: "object", properties: { name: { type: ["string", "null"] } }, required: ["name"] }],
          properties: {
            friend: {
              type: "object",
              properties: { name: { type: ["string", "null"] } },
              required: ["name"],
              description: "Whom it likes.",
            },
          },
        },
      },
      required: ["body"],
      additionalProperties: false,
    });
    expect(named(tools, "getPet").inputSchema).toMatchObject({
      properties: { petId: { type: "string", format: "uuid" } },
      required: ["petId"],
    });
  } finally {
    await api.close();
  }
});

test("the same document gives the same tools, as text and as an object", async () => {
  const options = { baseUrl: "https://pets.example" };
  const tools = await listOf(JSON_TEXT, options);
  expect(await listOf(JSON.parse(JSON_TEXT), options)).toEqual(tools);
  expect(tools[0]?.binding).toMatchObject({ server: null });
});

test("inputs are checked by the resulting schemas", async () => {
  const tools = await listOf(YAML);
  const isTaken = (name: string, input: unknown) =>
    Compile({ ...named(tools, name).inputSchema }).Check(input);
  const pet = { name: "Rex", kind: null, parents: [{ name: "Ada", parents: [] }] };
  expect(isTaken("create_pet", { body: pet })).toBe(true);
  expect(isTaken("create_pet", { body: { ...pet, parents: [{ kind: "cat" }] } })).toBe(false);
  expect(isTaken("create_pet", {})).toBe(false);
  expect(isTaken("listPets", { limit: 1, "X-Trace": "b" })).toBe(true);
  expect(isTaken("listPets", { limit: 0 })).toBe(false);
  expect(isTaken("listPets", { other: 1 })).toBe(false);
  expect(isTaken("uploadPhoto", { petId: "1", body: { file: "AA==", note: null } })).toBe(true);
});
