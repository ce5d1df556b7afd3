/** The annotations by which a snapshot has the memory of its guest, and a guest goes on from it. */

/** On a VirtualMachineSnapshot: `"true"` saves memory and devices of the running guest too. */
export const INCLUDE_MEMORY = 'coracle.dev/include-memory';

/**
 * On a VirtualMachine, and on the instance made of it: the next start resumes the guest from this state instead of
 * booting it. `STATE`, the UID of a VirtualMachineSnapshot of the same namespace, or `STATE/TICKET`: a state is used
 * once for each ticket (UID) of a machine.
 */
export const RESUME_FROM = 'coracle.dev/resume-from';

/** On a VirtualMachine: `Boot` boots from the disks where the state cannot be used. */
export const RESUME_FALLBACK = 'coracle.dev/resume-fallback';

export interface ResumeRequest {
  /** UID of the VirtualMachineSnapshot whose state it is. */
  readonly state: string;
  readonly ticket?: string;
}

const UID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';
const REQUEST = new RegExp(`^(${UID})(?:/(${UID}))?$`);

/** What `RESUME_FROM` says; undefined when it is no such text. */
export function parseResumeFrom(text: string): ResumeRequest | undefined {
  const [, state, ticket] = REQUEST.exec(text) ?? [];
  if (state === undefined) return undefined;
  return { state, ...(ticket !== undefined && { ticket }) };
}

/** The text of a request. */
export const resumeFrom = ({ state, ticket }: ResumeRequest): string =>
  ticket === undefined ? state : `${state}/${ticket}`;
