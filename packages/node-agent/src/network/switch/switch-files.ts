/** Names by which an agent, its switch and the filters of its guests find each other in a data directory. */
import type { NetworkChange } from './switch-state.ts';

export const SWITCH_FILES = {
  /** Below the data directory; mode 0700. */
  directory: 'network',
  /** Which process is the switch. */
  process: 'switch-process.json',
  output: 'switch.log',
  /** For filters. */
  guests: 'guests.sock',
  /** For the agent. */
  control: 'control.sock',
  /** Of the agent: leads to the server of exports. */
  exports: 'exports.sock',
} as const;

/** From the directory of a guest, where its filter starts. */
export const GUESTS_SOCKET = `../../${SWITCH_FILES.directory}/${SWITCH_FILES.guests}`;

/** Changes with what is said over these sockets: an agent ends a switch of another version and starts its own. */
export const SWITCH_VERSION = 6;

/** One line of JSON each, from the agent. */
export type AgentMessage =
  | { readonly type: 'change'; readonly change: NetworkChange }
  /** What the node proves its name with to others, and where it listens for them. */
  | {
      readonly type: 'identity';
      readonly host: string;
      readonly certificate: string;
      readonly key: string;
      readonly ca: string;
    };

/** And to it. */
export type SwitchMessage =
  /** Where other nodes' switches find this one. */
  | { readonly type: 'listening'; readonly port: number }
  /** A port of a Service could not be had; `code` as of the system: EACCES, EADDRINUSE. */
  | {
      readonly type: 'port-problem';
      readonly service: string;
      readonly host: string;
      readonly port: number;
      readonly code: string;
    };
