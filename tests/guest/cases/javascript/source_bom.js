console.log('bom')
