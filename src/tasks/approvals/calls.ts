import type { AskedCall, AskedCalls, AskedTool } from "../../connectors/direct-call.ts";
import type { Call } from "../../gate/call.ts";
import type { TaskParts } from "../parts.ts";
import type { TaskService } from "../service.ts";

/** Gives calls of tools that clients make themselves, and that a person has to approve, a task each. */
export class TaskCalls implements AskedCalls {
  readonly #parts: Pick<TaskParts, "ids" | "door" | "answers">;
  readonly #tasks: TaskService;

  constructor(parts: Pick<TaskParts, "ids" | "door" | "answers">, tasks: TaskService) {
    this.#parts = parts;
    this.#tasks = tasks;
  }

  /** @throws Problem as a dispatch does, before anything is written */
  async dispatch(call: Call, { agent, tool, input, text }: AskedTool): Promise<AskedCall> {
    const { ids, door, answers } = this.#parts;
    const tier = door.tiers.lowest(agent.tierPolicy);
    call.about({ action: "task.dispatch", agent: agent.name, tier });
    const { id: task } = await this.#tasks.accept(call, {
      agent,
      tier,
      tools: [tool],
      metadata: {},
      input: `{"tool":${JSON.stringify(tool)},"arguments":${text}}`,
      call: { id: ids("call"), tool, arguments: input },
    });
    // Before the task's first write: it cannot have ended yet.
    answers.expect(task);
    return { task, answer: () => answers.find(task), leave: () => answers.leave(task) };
  }
}
