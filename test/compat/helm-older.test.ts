/** What `helm.test.ts` does with the newest helm, with those before it. */
// test:full: each release of charts once more.
process.env['CORACLE_HELMS'] = 'older';
await import('./helm.test.ts');
