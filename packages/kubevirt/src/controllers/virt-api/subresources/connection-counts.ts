/** Streams to guests that are open now, and when each guest had the last one (pkg/monitoring/metrics/virt-api). */
import type { ObjectKey } from '@coracle/apimachinery/meta/object';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { MessageSocket } from '@coracle/runtime/http/seam';
import type { ValueFamily } from '@coracle/runtime/metrics/metric-family';

export type ConnectionKind = 'console' | 'vnc' | 'portforward';

export interface ConnectionCounts {
  /** Counts one that has just been opened, until it is closed. */
  opened(kind: ConnectionKind, vmi: ObjectKey, socket: Pick<MessageSocket, 'onClose'>): void;
  families(): ValueFamily[];
}

/** Guests that are remembered; the one that had no connection for longest is forgotten first. */
const MAX_GUESTS = 1_024;
const NAMES: Readonly<Record<ConnectionKind, readonly [name: string, what: string]>> = {
  console: ['kubevirt_console_active_connections', 'active Console connections'],
  vnc: ['kubevirt_vnc_active_connections', 'active VNC connections'],
  portforward: ['kubevirt_portforward_active_tunnels', 'active portforward tunnels'],
};

interface Counted {
  readonly vmi: ObjectKey;
  readonly open: Record<ConnectionKind, number>;
  /** ms since the epoch. */
  lastAt: number;
}

/** Counts from nothing. */
export function createConnectionCounts(clock: Clock): ConnectionCounts {
  const guests = new Map<string, Counted>();
  return {
    opened(kind, vmi, socket) {
      const key = `${vmi.namespace}/${vmi.name}`;
      const counted = guests.get(key) ?? { vmi, open: { console: 0, vnc: 0, portforward: 0 }, lastAt: 0 };
      guests.delete(key);
      guests.set(key, counted);
      const [oldest] = guests.keys();
      if (guests.size > MAX_GUESTS && oldest !== undefined) guests.delete(oldest);
      counted.open[kind]++;
      counted.lastAt = clock.now();
      socket.onClose(() => {
        counted.open[kind]--;
      });
    },
    families: () => [
      ...(Object.keys(NAMES) as ConnectionKind[]).map((kind): ValueFamily => {
        const [name, what] = NAMES[kind];
        return {
          name,
          help: `Amount of ${what}, broken down by namespace and vmi name.`,
          type: 'gauge',
          samples: [...guests.values()].map(({ vmi, open }) => ({
            labels: { namespace: vmi.namespace, vmi: vmi.name },
            value: open[kind],
          })),
        };
      }),
      {
        name: 'kubevirt_vmi_last_api_connection_timestamp_seconds',
        help: 'Virtual Machine Instance last API connection timestamp. Including VNC, console, portforward, SSH and usbredir connections.',
        type: 'gauge',
        samples: [...guests.values()].map(({ vmi, lastAt }) => ({
          labels: { namespace: vmi.namespace, vmi: vmi.name },
          value: Math.floor(lastAt / 1000),
        })),
      },
    ],
  };
}
