/** What a guest says of itself: read inside of it, over its serial console. */
import type { VirtualMachineInstance } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import type { MessageSocket } from '../../packages/runtime/src/http/seam.ts';
import { eventually } from '../testkit/eventually.ts';
import { collect } from './board.ts';

export interface GuestIdentity {
  readonly uuid: string;
  /** '' when the guest sees none. */
  readonly serial: string;
}

const DMI = '/sys/class/dmi/id';
const encoder = new TextEncoder();
const SHELL = /:~# $/;
const PROMPT = /(login: |:~# )$/;
/** The shell asks for the place of the cursor behind its prompt. */
const CURSOR = '\x1b[6n';
let reads = 0;

/** Reads product_uuid and product_serial in a guest, logging in first where nobody has. */
export async function readIdentity(
  vmi: VirtualMachineInstance,
  connect: (vmi: VirtualMachineInstance) => Promise<MessageSocket>,
): Promise<GuestIdentity> {
  const socket = await connect(vmi);
  try {
    const seen = collect(socket);
    const type = (line: string): void => socket.send(encoder.encode(`${line}\n`));
    // A new line brings the prompt of now, also from a guest whose memory is a copy and that has said nothing yet.
    const text = (): string => seen.text().replaceAll(CURSOR, '');
    let asked = -Infinity;
    await eventually('a prompt', () => {
      if (performance.now() - asked > 1000) {
        asked = performance.now();
        type('');
      }
      return PROMPT.test(text());
    });
    if (!SHELL.test(text())) {
      type('root');
      await eventually('a shell', () => SHELL.test(text()));
    }
    const mark = `who-${++reads}`;
    type(`echo ${mark}: $(cat ${DMI}/product_uuid) [$(cat ${DMI}/product_serial)]`);
    const line = new RegExp(`${mark}: ([0-9a-f-]{36}) \\[(.*?)\\]`);
    await seen.has(line);
    const [, uuid = '', serial = ''] = line.exec(seen.text())!;
    return { uuid, serial };
  } finally {
    socket.close(1000, '');
  }
}
