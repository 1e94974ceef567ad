import type { ApprovalTask, ApprovalTasks, ApprovalToolCall } from "../../connectors/direct/call.ts";
import type { Call } from "../../gate/call.ts";
import type { TaskParts } from "../parts.ts";
import type { TaskService } from "../service.ts";

/** Creates a task for each of a client's own tool calls that a person must approve. */
export class TaskCalls implements ApprovalTasks {
  readonly #parts: Pick<TaskParts, "ids" | "modelGateway" | "answers">;
  readonly #tasks: TaskService;

  constructor(parts: Pick<TaskParts, "ids" | "modelGateway" | "answers">, tasks: TaskService) {
    this.#parts = parts;
    this.#tasks = tasks;
  }

  /** @throws Problem as a dispatch does, before anything is written */
  async dispatch(call: Call, { agent, tool, input, text }: ApprovalToolCall): Promise<ApprovalTask> {
    const { ids, modelGateway, answers } = this.#parts;
    const tier = modelGateway.tiers.lowest(agent.tierPolicy);
    call.about({ action: "task.dispatch", agent: agent.name, tier });
    const { id: task } = await this.#tasks.accept(call, {
      agent,
      tier,
      tools: [tool],
      metadata: {},
      input: { form: null, text: `{"tool":${JSON.stringify(tool)},"arguments":${text}}` },
      call: { id: ids("call"), tool, arguments: input },
    });
    // Must precede the task's first write, so that the task cannot end before the answer is expected.
    answers.expect(task);
    return { task, answer: () => answers.find(task), leave: () => answers.leave(task) };
  }
}
