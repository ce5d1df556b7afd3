/** Where the ports of a guest are found on the host's address of the VM, and which a user wants under their own number. */
import type { ForwardedPort } from './machine-plan.ts';

/**
 * On a VMI: ports that its address shall have under their own number, as `22,80,53/udp`, and ports of 127.0.0.1 that lead to one
 * of the guest, as `2222:22`.
 */
export const HOST_PORTS_ANNOTATION = 'coracle.dev/host-ports';
/** On a launcher Pod: where each port of the guest is, as JSON of `PublishedPort[]`. */
export const FORWARDED_PORTS_ANNOTATION = 'coracle.dev/forwarded-ports';

/** Within Linux's default range for ports of no meaning (32768 to 60999), which no program of the host asks for by number. */
const FIRST = 40_000;
const SPAN = 20_000;
const MAX_ASKED = 64;
const MAX_SHOWN = 40;

/** Where a port of a guest is looked for first: 22 is at 40022. Where that is taken the kernel names another. */
export const usualHostPort = (guestPort: number): number => FIRST + (guestPort % SPAN);

/** A port that can be dialled, in the words of a container's ports. */
export interface PublishedPort {
  readonly containerPort: number;
  readonly protocol: 'TCP' | 'UDP';
  readonly hostIP: string;
  readonly hostPort: number;
}

export interface AskedPort extends Pick<ForwardedPort, 'protocol' | 'port'> {
  /** Where it is to be on 127.0.0.1; without it the port is one of the VM's address, under its own number. */
  readonly hostPort?: number;
}

export interface AskedPorts {
  readonly ports: readonly AskedPort[];
  /** What cannot be understood, a sentence each. */
  readonly problems: readonly string[];
}

/** Reads the annotation; without one nothing is asked. At most 64 ports. */
export function askedHostPorts(annotations: Readonly<Record<string, string>> | undefined): AskedPorts {
  const text = annotations?.[HOST_PORTS_ANNOTATION] ?? '';
  const problems: string[] = [];
  const ports = new Map<string, AskedPort>();
  const parts = text === '' ? [] : text.split(',', MAX_ASKED + 1);
  if (parts.length > MAX_ASKED) problems.push(`${HOST_PORTS_ANNOTATION} names more than ${MAX_ASKED} ports`);
  for (const part of parts.slice(0, MAX_ASKED)) {
    const [, host, number, protocol = 'tcp'] =
      /^(?:([1-9]\d{0,4}):)?([1-9]\d{0,4})(?:\/(tcp|udp))?$/i.exec(part.trim()) ?? [];
    const port = Number(number ?? 0);
    const hostPort = host === undefined ? undefined : Number(host);
    if (port < 1 || port > 65_535 || (hostPort ?? 0) > 65_535)
      problems.push(`${HOST_PORTS_ANNOTATION}: ${JSON.stringify(part.slice(0, MAX_SHOWN))} is not a port`);
    else {
      const name = protocol.toLowerCase() === 'udp' ? 'udp' : 'tcp';
      ports.set(`${name}/${hostPort === undefined ? port : `${hostPort}:`}`, {
        protocol: name,
        port,
        ...(hostPort !== undefined && { hostPort }),
      });
    }
  }
  return { ports: [...ports.values()], problems };
}
