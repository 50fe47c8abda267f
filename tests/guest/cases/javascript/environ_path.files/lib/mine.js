console.log('mine', __filename)
