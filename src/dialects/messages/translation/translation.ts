import type { Translation } from "../../translation/translation.ts";
import { OPTION_PATHS, readMessagesCall } from "./read-request.ts";
import { thinkingForm } from "./thinking-form.ts";
import { wholeMessage } from "./write-message.ts";
import { MessageEvents } from "./write-stream.ts";

/** Messages for models whose providers speak another dialect. */
export const MESSAGES_TRANSLATION: Translation = {
  paths: OPTION_PATHS,
  options: readMessagesCall,
  writer(value, target, head) {
    const thinking = thinkingForm(value);
    const events = new MessageEvents(target, head, thinking);
    return {
      whole: (result) => wholeMessage(result, target, head, thinking),
      part: (part) => events.part(part),
    };
  },
};
