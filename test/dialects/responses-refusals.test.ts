/** Responses: what is refused before anything is sent. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { openResponsesStage, type ResponsesStage, responseOf, textItem } from "./responses-support.ts";

let stage: ResponsesStage;
beforeAll(async () => {
  stage = await openResponsesStage();
  stage.upstream.script("first", { response: responseOf([textItem("x")]) });
});
afterAll(() => stage.stop());

type Refusal = [name: string, body: object | string, status: number, code: string, param: string | null];
const asked = (more: object) => ({ model: "up/first", input: "x", store: false, ...more });
const REFUSED: Refusal[] = [
  ["a model that the policy forbids", asked({ model: "up/never" }), 403, "model_forbidden", null],
  ["a tier that the policy forbids", asked({ model: "tier:2" }), 403, "tier_forbidden", null],
  ["no model", { input: "x" }, 422, "validation_failed", "model"],
  ["an unknown model", asked({ model: "nobody/x" }), 404, "model_not_found", "model"],
  ["a stream that is not a flag", asked({ stream: "yes" }), 422, "validation_failed", "stream"],
  ["a store that is not a flag", asked({ store: "no" }), 422, "validation_failed", "store"],
  ["a conversation", asked({ conversation: "conv_1" }), 400, "unsupported_parameter", "conversation"],
  [
    "a conversation's object",
    asked({ conversation: { id: "conv_1" } }),
    400,
    "unsupported_parameter",
    "conversation",
  ],
  [
    "background work that is not stored",
    asked({ background: true, store: false }),
    400,
    "unsupported_parameter",
    "store",
  ],
  ["a stored prompt", asked({ prompt: { id: "pmpt_1" } }), 400, "unsupported_parameter", "prompt"],
  [
    "a stored prompt, named only",
    { model: "up/first", prompt: "pmpt_1" },
    400,
    "unsupported_parameter",
    "prompt",
  ],
  [
    "a stored prompt in other letters",
    '{"model":"up/first","input":"x","Prompt":{"id":"pmpt_1"}}',
    ...([400, "invalid_json", null] as const),
  ],
  [
    "a stored prompt that a second one hides",
    '{"model":"up/first","input":"x","prompt":{"id":"pmpt_1"},"prompt":null}',
    ...([400, "invalid_json", null] as const),
  ],
  ["a foreign response", asked({ previous_response_id: "resp_1" }), 404, "not_found", "previous_response_id"],
  ["two models", '{"model":"up/first","input":"x","model":"up/never"}', 400, "invalid_json", null],
  [
    "two previous responses",
    '{"model":"up/first","previous_response_id":"resp_1","previous_response_id":null}',
    400,
    "invalid_json",
    null,
  ],
  [
    "a conversation in other letter case",
    '{"model":"up/first","Conversation":"conv_1"}',
    400,
    "invalid_json",
    null,
  ],
];
const FOREIGN: [name: string, item: object | string, status: number, code: string][] = [
  ["an item_reference", { type: "item_reference", id: "msg_1" }, 404, "not_found"],
  ["a reference without a type", { id: "msg_1" }, 404, "not_found"],
  ["a reference without a type, but null", { id: "msg_1", type: null, role: null }, 404, "not_found"],
  ["reasoning that only has an id", { type: "reasoning", id: "rs_1", summary: [] }, 404, "not_found"],
  ["an image that only has an id", { type: "image_generation_call", id: "ig_1" }, 404, "not_found"],
  ["a message without content", { type: "message", id: "msg_1", role: "assistant" }, 404, "not_found"],
  ["a message with no parts", { id: "msg_1", role: "assistant", content: [] }, 404, "not_found"],
  ["a file search without its results", { type: "file_search_call", id: "fs_1" }, 404, "not_found"],
  ["the type of every object", { type: "constructor", id: "x_1" }, 404, "not_found"],
  [
    "a message with its content twice",
    '{"type":"message","id":"msg_1","role":"user","content":null,"content":"x"}',
    400,
    "invalid_json",
  ],
  ["an item of an unknown type", { type: "novelty", id: "nv_1" }, 404, "not_found"],
  [
    "a reference that is also a message",
    '{"type":"item_reference","id":"msg_1","type":"message","role":"user","content":"x"}',
    400,
    "invalid_json",
  ],
  ["a reference with an escape", '{"t\\u0079pe":"item_refer\\u0065nce","id":"msg_1"}', 404, "not_found"],
];
for (const [name, item, status, code] of FOREIGN) {
  const text = typeof item === "string" ? item : JSON.stringify(item);
  const body = `{"model":"up/first","input":[{"role":"user","content":"x"}, ${text} ]}`;
  REFUSED.push([name, body, status, code, status === 404 ? "input" : null]);
}

const HIDDEN_TOOLS: [name: string, members: string][] = [
  ["tools that are there twice", '"tools":[{"type":"mcp"}],"input":"x","tools":[]'],
  ["a tool with two types", '"input":"x","tools":[{"type":"mcp","type":"function"}]'],
  ["a tool with a type in other letters", '"input":"x","tools":[{"Type":"mcp","type":"function"}]'],
  [
    "a shell with two environments",
    '"input":"x","tools":[{"type":"shell","environment":{"type":"container_auto"},"environment":null}]',
  ],
  [
    "a shell's environment with two types",
    '"input":"x","tools":[{"type":"shell","environment":{"type":"container_auto","type":"local"}}]',
  ],
  [
    "an item whose tools are there twice",
    '"input":[{"type":"additional_tools","tools":[{"type":"mcp"}],"tools":null}]',
  ],
];
for (const [name, members] of HIDDEN_TOOLS) {
  REFUSED.push([name, `{"model":"up/first",${members}}`, 400, "invalid_json", null]);
}
const says = (part: object) => ({ input: [{ role: "user", content: [part] }] });
const tool = (more: object) => ({ tools: [more] });
const KEPT_BY_THE_PROVIDER: [name: string, more: object | string, param: string][] = [
  ["a file", says({ type: "input_file", file_id: "file_1" }), "file_id"],
  ["an image", says({ type: "input_image", file_id: "file_1" }), "file_id"],
  [
    "a screenshot",
    {
      input: [
        {
          type: "computer_call_output",
          call_id: "call_1",
          output: { type: "computer_screenshot", file_id: "file_1" },
        },
      ],
    },
    "file_id",
  ],
  [
    "a file in a function's output",
    {
      input: [
        {
          type: "function_call_output",
          call_id: "call_1",
          output: [{ type: "input_file", file_id: "file_1" }],
        },
      ],
    },
    "file_id",
  ],
  [
    "a file in a variable",
    { prompt: { id: "p", variables: { x: { type: "input_file", file_id: "file_1" } } } },
    "file_id",
  ],
  ["a container", tool({ type: "code_interpreter", container: "cntr_1" }), "container"],
  [
    "files of a new container",
    tool({ type: "code_interpreter", container: { type: "auto", file_ids: ["file_1"] } }),
    "file_ids",
  ],
  [
    "a shell's container",
    tool({ type: "shell", environment: { type: "container_reference", container_id: "cntr_1" } }),
    "container",
  ],
  [
    "a shell's skill",
    tool({
      type: "shell",
      environment: { type: "container_auto", skills: [{ type: "skill_reference", skill_id: "s_1" }] },
    }),
    "skill_id",
  ],
  ["a mask", tool({ type: "image_generation", input_image_mask: { file_id: "file_1" } }), "file_id"],
  ["a vector store", tool({ type: "file_search", vector_store_ids: ["vs_1"] }), "vector_store_ids"],
  [
    "a tool in the input",
    { input: [{ type: "additional_tools", tools: [{ type: "file_search", vector_store_ids: ["vs_1"] }] }] },
    "vector_store_ids",
  ],
  [
    "a file that is named twice",
    '{"role":"user","content":[{"type":"input_file","file_id":"file_1","file_id":null}]}',
    "file_id",
  ],
  [
    "a file in other letters",
    '{"role":"user","content":[{"type":"input_file","File_\\u0049d":"file_1"}]}',
    "file_id",
  ],
];
for (const [name, more, param] of KEPT_BY_THE_PROVIDER) {
  const body = typeof more === "string" ? `{"model":"up/first","input":[${more}]}` : asked(more);
  REFUSED.push([`${name} that only the provider keeps`, body, 404, "not_found", param]);
}

test.each(REFUSED)("%s is refused, and nothing is sent", async (_, body, status, code, param) => {
  const before = stage.upstream.requests.length;
  const { response, bytes } = await stage.post(typeof body === "string" ? body : JSON.stringify(body));
  const { error } = JSON.parse(bytes.toString());
  expect([response.status, error.code, error.param]).toEqual([status, code, param]);
  expect(response.headers.get("gatehouse-code")).toBe(code);
  expect(stage.upstream.requests.length).toBe(before);
  expect(await stage.entriesOf(response)).toMatchObject([{ outcome: "denied", code }]);
});

test("items that include their content are passed on with their ids", async () => {
  const input = [
    { role: "user", content: "x" },
    { type: "message", id: "msg_1", role: "assistant", content: [{ type: "output_text", text: "y" }] },
    { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "sealed" },
    { type: "function_call", id: "fc_1", call_id: "call_1", name: "f", arguments: "{}" },
    { type: "function_call_output", call_id: "call_1", output: "z" },
  ];
  const { response } = await stage.post(JSON.stringify(asked({ input })));
  expect(response.status).toBe(200);
  expect(JSON.parse(stage.upstream.requests.at(-1)?.bytes.toString() ?? "").input).toEqual(input);
});

test("members of these names that lead to nothing of the provider pass", async () => {
  const more = {
    metadata: { file_id: "file_1" },
    input: [
      {
        role: "user",
        content: [{ type: "input_file", file_data: "data:text/plain;base64,eA==", file_id: null }],
      },
      { type: "function_call", call_id: "call_1", name: "f", arguments: '{"file_id":"file_1"}' },
      {
        ...{ type: "message", role: "assistant" },
        content: [
          { type: "output_text", text: "y", annotations: [{ type: "file_citation", file_id: "file_1" }] },
        ],
      },
    ],
    tools: [
      {
        ...{ type: "function", name: "f" },
        parameters: {
          type: "object",
          properties: { file_id: { type: "string" } },
          default: { file_id: "x" },
        },
      },
      { type: "code_interpreter", container: { type: "auto" } },
    ],
  };
  const { response } = await stage.post(JSON.stringify(asked(more)));
  expect(response.status).toBe(200);
});

test("a container passes only if a response that the request refers to was made in it", async () => {
  const item = {
    ...{ type: "code_interpreter_call", id: "ci_1", code: "1", outputs: [] },
    status: "completed",
  };
  const made = { ...item, container_id: "cntr_own" };
  const said = textItem("cntr_said");
  stage.upstream.script("first", { response: responseOf([made, said], { id: "resp_own" }) });
  await stage.post(JSON.stringify({ model: "up/first", input: "x" }));
  stage.upstream.script("first", { response: responseOf([textItem("y")]) });
  const ask = async (container: string, more: object) => {
    const tools = [{ type: "code_interpreter", container }];
    const { response } = await stage.post(JSON.stringify(asked({ tools, ...more })));
    return response.status;
  };
  const previous = { previous_response_id: "resp_own" };
  expect(await ask("cntr_own", previous)).toBe(200);
  expect(await ask("cntr_own", { input: [made] })).toBe(200);
  expect(await ask("cntr_said", previous)).toBe(404);
  expect(await ask("cntr_other", previous)).toBe(404);
  expect(await ask("cntr_own", {})).toBe(404);
  expect(await ask("cntr_own", { input: [{ ...made, container_id: "cntr_other" }] })).toBe(404);
});

test("a container passes only to the provider that made it", async () => {
  const made = {
    ...{ type: "code_interpreter_call", id: "ci_theirs", code: "1", outputs: [], status: "completed" },
    container_id: "cntr_theirs",
  };
  stage.upstream.script("theirs", { response: responseOf([made], { id: "resp_theirs" }) });
  await stage.post(JSON.stringify({ model: "second/theirs", input: "x" }));
  stage.upstream.script("theirs", { response: responseOf([textItem("y")]) });
  const tools = [{ type: "code_interpreter", container: "cntr_theirs" }];
  for (const [model, status] of [
    ["up/first", 404],
    ["tier:1", 404],
    // One of its models belongs to the other provider.
    ["tier:3", 404],
    ["second/theirs", 200],
  ] as const) {
    for (const more of [{ previous_response_id: "resp_theirs" }, { input: [{ id: "ci_theirs" }] }]) {
      const before = stage.upstream.requests.length;
      const { response } = await stage.post(JSON.stringify(asked({ model, tools, ...more })));
      const sent = stage.upstream.requests.length - before;
      expect([model, response.status, sent]).toEqual([model, status, status === 200 ? 1 : 0]);
    }
  }
});
