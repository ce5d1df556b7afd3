/** Protobuf that is bad for whoever reads it. */
import { type Body, utf8 } from './body.ts';

export function protobufBombs(): Body[] {
  const entry = (key: string, value: string): number[] => {
    const inner = [
      0x0a,
      ...varint(key.length),
      ...utf8.encode(key),
      0x12,
      ...varint(value.length),
      ...utf8.encode(value),
    ];
    return [0x12, ...varint(inner.length), ...inner];
  };
  const entries = Array.from({ length: 120_000 }, (_, i) => entry(`k${i}`, 'v')).flat();
  return [
    {
      name: 'protobuf of groups',
      type: 'application/vnd.kubernetes.protobuf',
      bytes: envelope(new Uint8Array(1_000_000).fill(0x0b)),
    },
    {
      name: 'protobuf that claims a length',
      type: 'application/vnd.kubernetes.protobuf',
      bytes: envelope(new Uint8Array([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f, 1])),
    },
    { name: 'protobuf in itself', type: 'application/vnd.kubernetes.protobuf', bytes: envelope(nested(4000)) },
    {
      name: 'protobuf of many keys',
      type: 'application/vnd.kubernetes.protobuf',
      bytes: envelope(Uint8Array.from([0x0a, 6, 0x0a, 4, ...utf8.encode('bomb'), ...entries])),
    },
    {
      name: 'protobuf of unknown fields',
      type: 'application/vnd.kubernetes.protobuf',
      bytes: envelope(new Uint8Array(2_000_000).map((_, i) => (i % 2 === 0 ? 0x78 : 1))),
    },
  ];
}

const MAGIC = [0x6b, 0x38, 0x73, 0x00];

/** `raw` as the object of kind ConfigMap in the envelope of the protobuf wire. */
export function envelope(raw: Uint8Array, apiVersion = 'v1', kind = 'ConfigMap'): Uint8Array {
  const field = (number: number, bytes: Uint8Array): number[] => [(number << 3) | 2, ...varint(bytes.length), ...bytes];
  const meta = [...field(1, utf8.encode(apiVersion)), ...field(2, utf8.encode(kind))];
  const head = [...MAGIC, ...field(1, Uint8Array.from(meta)), (2 << 3) | 2, ...varint(raw.length)];
  const out = new Uint8Array(head.length + raw.length);
  out.set(head);
  out.set(raw, head.length);
  return out;
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>>= 7) {
    if (rest < 0x80) return [...bytes, rest];
    bytes.push((rest & 0x7f) | 0x80);
  }
}

/** Messages of field 1 in one another. */
function nested(levels: number): Uint8Array {
  let inner: number[] = [];
  for (let i = 0; i < levels; i++) inner = [0x0a, ...varint(inner.length), ...inner];
  return Uint8Array.from(inner);
}
