import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { createContext, runInContext } from 'node:vm';
import { build } from 'esbuild';
import { parse } from 'yaml';

// What a page's engine offers, and nothing of Node: `process`, `Buffer` and `require` are absent.
const PAGE = {
  AbortController,
  AbortSignal,
  Uint8Array,
  ArrayBuffer,
  TextDecoder,
  TextEncoder,
  URL,
  URLSearchParams,
  atob,
  btoa,
  clearInterval,
  clearTimeout,
  console,
  crypto,
  performance,
  queueMicrotask,
  setInterval,
  setTimeout,
  structuredClone,
  CompressionStream,
  ReadableStream,
  Response,
  DOMException,
};

// S-055: The control plane runs in a browser's engine and takes a VirtualMachine to its Pod.
test('the control plane runs in a browser engine and takes a VirtualMachine', { timeout: 600_000 }, async () => {
  const bundle = await build({
    entryPoints: ['test/features/fixtures/control-plane-in-a-page.ts'],
    bundle: true,
    write: false,
    platform: 'browser',
    format: 'iife',
    globalName: 'page',
    target: 'es2024',
    logLevel: 'silent',
  });
  const context = createContext({ ...PAGE });
  runInContext(bundle.outputFiles[0]!.text, context);
  const { applyInPage } = runInContext('page', context) as typeof import('./fixtures/control-plane-in-a-page.ts');
  const vm = parse(readFileSync('examples/tiny-vm.yaml', 'utf8'));
  vm.metadata.namespace = 'default';
  const { pod, uuid } = await applyInPage(vm);
  assert.match(pod, /^virt-launcher-tiny-[a-z0-9]{5}$/);
  assert.match(uuid ?? '', /^[0-9a-f-]{36}$/);
});
