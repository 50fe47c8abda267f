// A promise that nobody caught ends the program.
process.on('exit', (code) => console.log('leaving with', code));
setTimeout(() => console.log('never printed'), 1000);
Promise.reject(new Error('nobody caught me'));
console.log('synchronous part done');
