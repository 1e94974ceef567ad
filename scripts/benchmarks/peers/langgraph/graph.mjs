import { MessagesAnnotation, StateGraph } from "@langchain/langgraph";
import { ChatOpenAI } from "@langchain/openai";

const model = new ChatOpenAI({
  model: "short",
  apiKey: "sk-upstream",
  streaming: true,
  streamUsage: true,
  configuration: { baseURL: process.env.UPSTREAM_URL },
});

/** A graph with one node, which calls the model. */
export const graph = new StateGraph(MessagesAnnotation)
  .addNode("model", async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
  .addEdge("__start__", "model")
  .addEdge("model", "__end__")
  .compile();
